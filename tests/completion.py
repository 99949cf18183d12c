#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""completion.py DIR PROGRAMS: what the completion scripts in DIR offer in bash, and whether zsh and fish can read theirs."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# bash gives the function the words of the command line, with "=" as a word of its own.
ASK = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1))
"_${COMP_WORDS[0]}" && printf '%s\n' "${COMPREPLY[@]}"
"""
# words before the cursor: what is offered, or a part of it after "has"
CASES = [
    (["asymctl", ""], None, {"top", "sim", "run", "policies", "profile", "help"}),
    (["asymctl", "pr"], {"profile"}, None),
    (["asymctl", "sim", "--re"], {"--repeat="}, None),
    (["asymctl", "sim", "--policy", "=", "hab"], {""}, None),
    (["asymctl", "sim", "--policy", "=", "has"], {"hass"}, None),
    (["asymctl", "sim", "--policy", "has"], {"hass"}, None),
    (["asymctl", "sim", "--policy", "=", "pa,has"], {"pa,hass"}, None),
    (["asymctl", "sim", "--policy", "="], None, {"auto", "pa", "none"}),
    (["asymctl", "sim", "a-scen"], {"a-scenario.ini"}, None),
    (["asymctl", "sim", "--repeat", "=", ""], {""}, None),
    (["asymctl", "metrics", "--"], None, {"--json"}),
    (["asymctl", "record", "--j"], {"--json"}, None),
    (["asymctl", "run", "--g"], {"--gcc"}, None),
    (["asymctl", "run", "--gcc", "mkdi"], None, {"mkdir"}),
    (["asymctl", "run", "--tool", "=", "x", "mkdi"], None, {"mkdir"}),
    (["asymctl", "run", "--tool", "x", "mkdi"], None, {"mkdir"}),
    (["asymctl", "run", "--", "mkdi"], None, {"mkdir"}),
    (["asymctl", "run", "cat", "a-scen"], {"a-scenario.ini"}, None),
    (["asymctl", "run", "cat", "--"], {""}, None),
    (["asymctl", "policies", "a-scen"], {""}, None),
    (["asymctl", "nothing", ""], {""}, None),
    (["asymctl", "policy", "serial"], {"serial-first"}, None),
    (["asymctl", "pause", "a-scen"], {""}, None),
    (["asymctl", "why", str(os.getpid())], {str(os.getpid())}, None),
    (["asymctl", "why", ""], None, {f"{os.getpid()}  ({pathlib.Path('/proc/self/comm').read_text().strip()})"}),
    (["asymctl", "release", "pytho"], None, {pathlib.Path("/proc/self/comm").read_text().strip()}),
    (["asymctl", "set", str(os.getpid()), ""], {"fast", "slow", "ignore", "steer", "auto"}, None),
    (["asymctl", "set", "--json", str(os.getpid()), "ig"], {"ignore"}, None),
    (["asymctl", "rules", "t"], {"test"}, None),
    (["asymctl", "rules", "test", str(os.getpid())], {str(os.getpid())}, None),
    (["asymctl", "replay", "a-scen"], {"a-scenario.ini"}, None),
    (["asymd", "--dry"], {"--dry-run"}, None),
    (["asymd", "--slow"], {"--slow=", "--slow-speed="}, None),
    (["asymd", "--pid", "=", str(os.getpid())], None, {str(os.getpid())}),
    (["asymd", "--root", "=", "a-"], {"a-directory"}, None),
    (["asymd", "--config", "=", "a-"], {"a-directory", "a-scenario.ini"}, None),
    (["asymd", ""], {""}, None),
]


def offered(script, words, folder):
    done = subprocess.run(["bash", "--norc", "-c", ASK, "ask", script, *words], capture_output=True, text=True, cwd=folder)
    assert not done.stderr, (words, done.stderr)
    return set(done.stdout.split("\n")[:-1])


def check_offer(words, reply, wanted):
    assert reply == wanted, f"{' '.join(words)}: the completion offers {reply - wanted} too much, and lacks {wanted - reply}"


def run_help(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main(scripts, programs):
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "a-scenario.ini").touch()
        pathlib.Path(folder, "a-directory").mkdir()
        for words, all_of_it, part in CASES:
            reply = offered(scripts / "bash" / words[0], words, folder)
            if all_of_it is not None:
                check_offer(words, reply, all_of_it)
            else:
                assert reply >= part, f"{' '.join(words)}: the completion does not offer {part - reply}"
    options = re.findall(r"^  (--[a-z-]+)", run_help(programs["asymd"], "--help"), re.M)
    assert options, "asymd --help has no options"
    check_offer(["asymd", "--"], {o.rstrip("=") for o in offered(scripts / "bash/asymd", ["asymd", "--"], "/")}, set(options))
    verbs = re.findall(r"^  ([a-z]+)", run_help(programs["asymctl"], "help"), re.M)
    assert verbs, "asymctl help has no verbs"
    for words in ["asymctl", ""], ["asymctl", "help", "p"]:
        wanted = {verb for verb in verbs if verb.startswith(words[-1])}
        check_offer(words, offered(scripts / "bash/asymctl", words, "/"), wanted)
    fish = scripts / "fish/asymctl.fish"
    for line, part in ((("asymctl run mkdi"), "mkdir"), ("asymctl profile --time=1s -- mkdi", "mkdir"), ("asymctl sim --po", "--policy\t"),
                       ("asymctl policy serial", "serial-first"), ("asymctl set 1 ig", "ignore"), (f"asymctl why {os.getpid()}", "python")):
        reply = run_help("fish", "-c", f"source {fish}; complete -C '{line}'")
        assert part in reply, (line, reply)
    for program in programs:
        subprocess.run(["bash", "-n", scripts / "bash" / program], check=True)
        subprocess.run(["zsh", "-f", "-n", scripts / "zsh" / f"_{program}"], check=True)
        subprocess.run(["fish", "--no-execute", scripts / "fish" / f"{program}.fish"], check=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]).resolve(), {"asymd": sys.argv[2], "asymctl": sys.argv[3]})
