"""Opens a folder with the Python package, and prints what that said of it; nothing where it is opened."""

import sys
import traceback

import hopline

try:
    with hopline.AgentClient(api_key="key", base_url="https://api.example/v1", store=hopline.FolderStore(sys.argv[1])) as agent:
        list(agent.saved())
except hopline.HoplineError as error:
    print(error.kind, *traceback.format_exception(error))
