"""Scripts that complete commands and options in a shell, printed from the parser."""

from __future__ import annotations

from collections.abc import Iterator

from .arguments import Parser, commands_of

SHELLS = ("bash", "zsh", "fish")
HOW = """Prints a script that completes commands and options.

bash: eval "$(hopline completion bash)" in ~/.bashrc
zsh:  eval "$(hopline completion zsh)" in ~/.zshrc, behind compinit
fish: hopline completion fish > ~/.config/fish/completions/hopline.fish
"""


def script(parser: Parser, shell: str) -> str:
    """Returns the script for a shell."""
    if shell == "fish":
        return _fish(parser)
    cases = "\n".join(f"    '{' '.join(path)}') words='{' '.join(words)}' ;;" for path, words in _words(parser, []))
    bash = _BASH.replace("CASES", cases)
    return bash if shell == "bash" else f"autoload -U +X bashcompinit && bashcompinit\n{bash}"


# Words of the line that are commands lead to the parser; what follows an option that is a folder is completed as one.
_BASH = """\
_hopline() {
  local path='' words='' word
  for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
    case $word in -*) break ;; *) path="${path:+$path }$word" ;; esac
  done
  if [ "${COMP_WORDS[COMP_CWORD-1]}" = --store ]; then
    COMPREPLY=($(compgen -d -- "${COMP_WORDS[COMP_CWORD]}"))
    return
  fi
  while :; do
    case $path in
CASES
    esac
    case $words,$path in ,*' '*) path=${path% *} ;; *) break ;; esac
  done
  COMPREPLY=($(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}"))
}
complete -F _hopline hopline
"""


def _words(parser: Parser, path: list[str]) -> Iterator[tuple[list[str], list[str]]]:
    """The words that may follow each command: further commands, or its options and choices."""
    commands = commands_of(parser)
    yield path, [*commands, *_options(parser)]
    for name, below in commands.items():
        yield from _words(below, [*path, name])


def _options(parser: Parser) -> list[str]:
    choices = [str(choice) for action in parser._actions if not action.option_strings and not commands_of(parser) for choice in action.choices or ()]
    return [*choices, *(option for action in parser._actions for option in action.option_strings if option.startswith("--"))]


def _fish(parser: Parser) -> str:
    lines = ["complete -c hopline -f", "complete -c hopline -l store -r -a '(__fish_complete_directories)'"]
    for path, words in _words(parser, []):
        seen = "; and ".join(f"__fish_seen_subcommand_from {word}" for word in path) or "__fish_use_subcommand"
        for word in words:
            lines.append(f"complete -c hopline -n '{seen}' {'-l ' + word[2:] if word.startswith('--') else '-a ' + word}")
    return "\n".join(lines) + "\n"
