"""`make release`: distributions that can be built again byte for byte, and that were tried as a user would.

`distributions` builds the wheel and the source distribution, `installation` installs and tries them.
`compiled_wheel` does so with the compiled wheel, where there is a C compiler.
"""
