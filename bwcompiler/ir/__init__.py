"""The two languages of the compiler (graph IR and loop IR): types, values, printers, parsers, verifiers, interpreters."""
