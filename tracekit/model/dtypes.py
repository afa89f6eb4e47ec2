"""How wide the elements of a tensor are, by torch's name of the type and by C++'s."""

#: Bytes of one element, by torch's name of the type.
ELEMENT_BYTES = {
    **dict.fromkeys(("bool", "uint8", "int8"), 1),
    **dict.fromkeys(("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu"), 1),
    **dict.fromkeys(("int16", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "float32"), 4),
    **dict.fromkeys(("int64", "float64", "complex64"), 8),
    "complex128": 16,
}

#: torch's name of a type by C++'s, which recordings have.
CPP_TYPES = {
    "bool": "bool",
    "unsigned char": "uint8",
    "c10::Half": "float16",
    "c10::BFloat16": "bfloat16",
    **dict.fromkeys(("signed char", "char"), "int8"),
    **dict.fromkeys(("short int", "short"), "int16"),
    "int": "int32",
    **dict.fromkeys(("long int", "long", "long long"), "int64"),
    **{f"c10::F{name[1:]}": name for name in ELEMENT_BYTES if name.startswith("float8")},
    "float": "float32",
    "double": "float64",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
}

#: Bytes of one element, by C++'s name of the type.
CPP_ELEMENT_BYTES = {cpp: ELEMENT_BYTES[dtype] for cpp, dtype in CPP_TYPES.items()}

#: torch's name of a type by c10's, which records of communication have.
C10_TYPES = {
    "Bool": "bool",
    "Byte": "uint8",
    "Char": "int8",
    "Short": "int16",
    "Int": "int32",
    "Long": "int64",
    "Half": "float16",
    "BFloat16": "bfloat16",
    "Float": "float32",
    "Double": "float64",
    "Float8_e4m3fn": "float8_e4m3fn",
    "Float8_e5m2": "float8_e5m2",
    "ComplexFloat": "complex64",
    "ComplexDouble": "complex128",
}

#: Bytes of one element, by c10's name of the type.
C10_ELEMENT_BYTES = {c10: ELEMENT_BYTES[dtype] for c10, dtype in C10_TYPES.items()}
