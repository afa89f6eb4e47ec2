"""How wide the elements of a tensor are, by torch's name of the type and by C++'s."""

from __future__ import annotations

#: Bytes of one element, by torch's name of the type.
ELEMENT_BYTES = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "int16": 2,
    "int32": 4,
    "int64": 8,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "float8_e4m3fnuz": 1,
    "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1,
    "float16": 2,
    "bfloat16": 2,
    "float32": 4,
    "float64": 8,
    "complex64": 8,
    "complex128": 16,
}

#: torch's name of a type by C++'s, which recordings have.
CPP_TYPES = {
    "bool": "bool",
    "unsigned char": "uint8",
    "signed char": "int8",
    "char": "int8",
    "short int": "int16",
    "short": "int16",
    "int": "int32",
    "long int": "int64",
    "long": "int64",
    "long long": "int64",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::Float8_e5m2fnuz": "float8_e5m2fnuz",
    "c10::Float8_e8m0fnu": "float8_e8m0fnu",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    "float": "float32",
    "double": "float64",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}

#: Bytes of one element, by C++'s name of the type.
CPP_ELEMENT_BYTES = {cpp: ELEMENT_BYTES[dtype] for cpp, dtype in CPP_TYPES.items()}
