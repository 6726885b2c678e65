"""Everything that can go wrong, as one small tree.

Each class has a stable `code` (what a program tests), an `http_status`, and says whether the same request may
succeed later (`retryable`). Every message says what to do. No message contains spoken text.
"""


class LegatoError(Exception):
    """The one exception type of the library; catch it to catch everything Legato raises on purpose.

    Attributes:
        code: stable name of the kind of error, documented in docs/reference/errors.md.
        param: the field of the request that is at fault, or None.
        retry_after: seconds after which a retry makes sense, or None.
    """

    code = "internal_error"
    http_status = 500
    retryable = False

    def __init__(self, message: str, *, param: str | None = None, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.retry_after = retry_after


class InvalidRequest(LegatoError):
    """The caller's mistake: a value that no server could accept."""

    code = "invalid_request"
    http_status = 400


class NothingToSpeak(InvalidRequest):
    """The text holds nothing that the voice can pronounce."""

    code = "nothing_to_speak"


class TextTooLong(InvalidRequest):
    """The text is longer than the configured limit."""

    code = "text_too_long"
    http_status = 413


class UnknownVoice(InvalidRequest):
    """No installed engine has a voice of that name."""

    code = "unknown_voice"


class UnknownModel(InvalidRequest):
    """No installed engine has that name."""

    code = "unknown_model"
    http_status = 404


class UnsupportedFormat(InvalidRequest):
    """The audio format is not one that this server can write."""

    code = "unsupported_format"


class MissingExtra(LegatoError):
    """An optional dependency is not installed; the message names the extra."""

    code = "missing_extra"


class VoiceFileError(LegatoError):
    """A voice file is missing, damaged or not the one that was reviewed."""

    code = "voice_file"


class ConfigError(LegatoError):
    """The configuration file, or an engine's settings in it, cannot be used."""

    code = "bad_config"


class NotReady(LegatoError):
    """The engine is still loading or warming up."""

    code = "not_ready"
    http_status = 503
    retryable = True


class EngineFailed(LegatoError):
    """The engine raised; the stream is incomplete."""

    code = "engine_failed"
    http_status = 500
    retryable = True


class Cancelled(LegatoError):
    """The stream was cancelled before its end."""

    code = "cancelled"
    http_status = 499


def _classes(root: type[LegatoError]) -> list[type[LegatoError]]:
    return [root, *(found for child in root.__subclasses__() for found in _classes(child))]


def error_for(code: str, message: str, *, param: str | None = None) -> LegatoError:
    """The exception that stands for a `Failed` event's code."""
    found = next((cls for cls in _classes(LegatoError) if cls.code == code), LegatoError)
    return found(message, param=param)
