"""The playground: a page on which the package runs in a browser, in WebAssembly.

`page/` is what is written here. `runtime` gets Python for WebAssembly and msgspec's build for it, which are
not part of the repository, and `assembly` puts both beside the sources of the package. `python -m
tools.playground DIRECTORY` builds the page alone.
"""
