"""What tests, benchmarks and the generated documentation share, and the wheel does not contain."""
