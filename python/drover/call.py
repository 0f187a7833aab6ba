"""Runs in the job of a function: reads call.pickle, writes result.json. Sent along with each such job, so that nothing of
Drover need be installed where it runs; only the standard library may be used here."""
import importlib
import json
import pickle
import sys
import traceback


def main():
    index = int(sys.argv[1])
    try:
        with open("call.pickle", "rb") as f:
            data = f.read()
        try:
            importlib.import_module("cloudpickle")
        except ImportError:
            pass
        function, calls = pickle.loads(data)
        args, kwargs = calls[index]
        answer = {"value": function(*args, **kwargs)}
        text = json.dumps(answer)
    except BaseException as e:  # whatever it was, its caller is told
        text = json.dumps({"error": f"{type(e).__name__}: {e}", "traceback": traceback.format_exc()})
    with open("result.json", "w", encoding="utf-8") as f:
        f.write(text)


main()
