"""The scripts that shells are given. Each asks `git-ledger completion words`, whose last word is being typed.

Every line of the answer is a word, a tab, and what it is. An empty answer leaves it to the shell's file names.
"""

from __future__ import annotations

__all__ = ["SCRIPTS"]

_BASH = r"""# bash completion of git-ledger and, beside git's own completion, of git ledger
_git_ledger_words() {
  local behind=$1 line=${COMP_LINE:0:COMP_POINT} words word value about prefix='' break_
  local -a typed=()
  read -ra words <<<"$line"
  case $line in *[[:space:]]) words+=('') ;; esac
  if [ "${words[0]##*/}" = git ]; then
    set -- "${words[@]:1}"
    while [ $# -gt 0 ] && [ "$1" != ledger ]; do
      if [ "$1" = -C ] && [ $# -gt 1 ]; then typed+=(-C "$2"); shift; fi
      shift
    done
    typed+=("${@:2}")
  else
    typed=("${words[@]:1}")
  fi
  word=${typed[${#typed[@]} - 1]}
  for break_ in : = @; do  # where bash begins a word of its own, what stands before is not to be repeated
    case $COMP_WORDBREAKS in *"$break_"*)
      value=${word%"${word##*"$break_"}"}
      [ "$break_" != @ ] || value=${value%@}  # readline's: it begins with this one
      [ ${#value} -le ${#prefix} ] || prefix=$value ;;
    esac
  done
  COMPREPLY=()
  while IFS=$'\t' read -r value about; do
    COMPREPLY+=("${value#"$prefix"}$behind")
  done < <(git-ledger completion words "${typed[@]}" 2>/dev/null)
}
_git_ledger() { _git_ledger_words ' '; }  # git completes without a blank behind
_git_ledger_alone() { _git_ledger_words ''; }
complete -o bashdefault -o default -F _git_ledger_alone git-ledger
"""

_ZSH = r"""#compdef git-ledger
# zsh completion of git-ledger and, through zsh's own for git, of git ledger
_git-ledger() {
  local -a found
  local line
  for line in ${(f)"$(git-ledger completion words "${(@)words[2,CURRENT]}" 2>/dev/null)"}; do
    found+=("${${line%%$'\t'*}//:/\\:}:${line#*$'\t'}")
  done
  if (( $#found )); then _describe -t words 'git ledger' found; else _files; fi
}
zstyle -g _git_ledger_before ':completion:*:*:git:*' user-commands
zstyle ':completion:*:*:git:*' user-commands $_git_ledger_before ledger:'signed test evidence, as git notes'
unset _git_ledger_before
if [ "$funcstack[1]" = _git-ledger ]; then _git-ledger "$@"; else compdef _git-ledger git-ledger; fi
"""

_FISH = r"""# fish completion of git-ledger and of git ledger
function __git_ledger_words
    set -l words (commandline -opc)
    set -l typed
    if string match -qr '(^|/)git$' -- $words[1]
        set -l place (contains -i -- ledger $words)
        set -l folder (contains -i -- -C $words[1..$place])
        and set typed -C $words[(math $folder + 1)]
        set words $words[$place..-1]
    end
    set -l found (git-ledger completion words $typed $words[2..-1] (commandline -ct) 2>/dev/null)
    if test -n "$found"
        string join \n -- $found
    else
        __fish_complete_path (commandline -ct)
    end
end
complete -c git-ledger -f -a '(__git_ledger_words)'
complete -c git -f -n '__fish_seen_subcommand_from ledger' -a '(__git_ledger_words)'
complete -c git -f -n __fish_git_needs_command -a ledger -d 'Signed test evidence, as git notes'
"""

SCRIPTS = {"bash": _BASH, "zsh": _ZSH, "fish": _FISH}
"""The script of each shell, by its name."""
