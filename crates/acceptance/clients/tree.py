"""Reads the tree of files that the clients transfer."""

import os


def files_below(folder):
    """Returns the relative names and the contents of the files below a folder."""
    paths = [os.path.join(at, name) for at, _, names in os.walk(folder) for name in names]
    return {os.path.relpath(path, folder): open(path, "rb").read() for path in paths}
