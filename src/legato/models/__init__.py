"""Networks and signal processing. Only here and in `engines` may torch, onnx and onnxruntime be imported."""
