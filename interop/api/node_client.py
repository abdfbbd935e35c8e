"""Runs client.mjs: types from the server's document, checked by tsc, then the script itself. The folder with the packages is
the first argument."""

import shutil
import subprocess
import sys
from pathlib import Path

from stage import Stage

HERE = Path(__file__).parent


def main():
    packages = Path(sys.argv[1])
    with Stage() as stage:
        shutil.copy(HERE / "client.mjs", packages)
        tool = packages / "node_modules" / ".bin"

        def run(*command):
            subprocess.run([str(word) for word in command], cwd=packages, check=True)

        run(tool / "openapi-typescript", f"{stage.url}/api/openapi.json", "--output", "schema.d.ts")
        run(
            tool / "tsc", "--noEmit", "--strict", "--checkJs", "--allowImportingTsExtensions", "--target", "es2022",
            "--module", "nodenext", "--skipLibCheck", "--types", "node", "client.mjs",
        )
        run("node", "client.mjs", stage.url, stage.key("organiser", "ann"))


main()
