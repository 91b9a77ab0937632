# captured_completion.zsh DIRECTORY LINE...: prints what zsh offers for the last word of each command
# line, one candidate a line, and a line "end of candidates" after those of each command line.
# DIRECTORY has the completion function.
#
# Completion works only in an interactive shell, so one runs in a pseudo terminal here.
emulate -L zsh
zmodload zsh/zpty
directory=$1
shift
zpty shell zsh -f -i
send() { zpty -w shell $1 }
send "PROMPT= RPROMPT=; unset zle_bracketed_paste; stty -echo"
send "fpath=($directory \$fpath); autoload -Uz compinit; compinit -u -D"
# Prints the candidates of each call, and adds them, so that the function works as usual.
send 'compadd() {
  if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
  local -a hits
  builtin compadd -A hits "$@"
  print -r -- "candidates:${(pj:\t:)hits}"
  builtin compadd "$@"
}'
send "zstyle ':completion:*' list-prompt ''; zstyle ':completion:*' menu no; setopt no_list_beep no_auto_list"
send 'finish() { print; print -r -- "end of candidates"; zle kill-buffer }'
send "zle -N finish; bindkey '^I' complete-word; bindkey '^X' finish; print -r -- ready"
until [[ $line == ready* ]]; do zpty -r shell line || exit 1; done
for command_line; do
  zpty -w -n shell "$command_line"$'\t'$'\x18'
  while zpty -r shell line; do
    [[ $line == *"end of candidates"* ]] && break
    if [[ $line == *candidates:* ]]; then print -rl -- ${(ps:\t:)${${line#*candidates:}%$'\r'}}; fi
  done
  print "end of candidates"
done
zpty -d shell 2>/dev/null
