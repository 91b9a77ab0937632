# Completion of siltfs's command line for bash. Tested against --help.

_siltfs_mount_options="ro rw allow_other allow_root noxattr uid= gid= umask= nogc index_memory= index_sync index_merge_rate= bucket_timeout= follow= reader_age= sync= commit= log= max_read= snapdir= snapshot= io_uring= search= debug suid nosuid dev nodev noexec noatime sync dirsync context= fscontext= defcontext= rootcontext="

_siltfs_options() {
  case $1 in
    mkfs) echo --chunk-avg --chunk-min --chunk-max --compression --label --delta --index-engine --index-memory --index-option --expected-chunks --root-owner --bucket --endpoint --bucket-region --bucket-credentials --bucket-ca --cache --bucket-prices --help ;;
    mount) echo --foreground --options --part --quiet --cache --endpoint --bucket-region --bucket-credentials --bucket-ca --take-over --help ;;
    mount.siltfs) echo --version --help ;;
    *.siltfs) echo --version "$(_siltfs_options "${1%.siltfs}")" ;;
    umount) echo --help ;;
    stat) echo --json --watch --help ;;
    tune) echo --compression --index-memory --label --uuid --bucket --endpoint --bucket-region --bucket-credentials --bucket-ca --cache --bucket-prices --json --help ;;
    sync | settle | scrub | clone) echo --json --quiet --help ;;
    list | explain) echo --json --help ;;
    du) echo --max-depth --summarize --bytes --json --quiet --help ;;
    find-duplicates) echo --min-size --limit --partial --json --quiet --help ;;
    "snapshot create" | "snapshot rename" | "snapshot delete") echo --json --quiet --help ;;
    "quota set") echo --bytes --files --json --quiet --help ;;
    "quota show" | "quota remove") echo --json --help ;;
    "snapshot list" | "snapshot show") echo --no-sizes --json --quiet --help ;;
    "snapshot diff") echo --json --quiet --help ;;
    "snapshot rollback") echo --keep-as --json --quiet --help ;;
    "snapshot prune") echo --keep-last --keep-hourly --keep-daily --keep-weekly --keep-monthly --keep-yearly --dry-run --json --quiet --help ;;
    send) echo --base --two-way --resume --json --quiet --help ;;
    receive) echo --name --two-way --token --abandon --json --quiet --help ;;
    gc) echo --dry-run --json --quiet --help ;;
    fsck) echo --data --json --quiet --help ;;
    import) echo --reference --checksum --delete --exclude --one-file-system --dry-run --json --quiet --help ;;
    export) echo --verify --json --quiet --help ;;
    check-health) echo --scrub-age --nearly-full --full --backlog --dead --bucket-lag --timeout --mounted --json --help ;;
    metrics) echo --output --listen --help ;;
    notify) echo --event --message --count --mountpoint --timeout --help ;;
    report) echo --output --quiet --help ;;
    index | snapshot | quota | bucket) echo --help ;;
    "bucket push") echo --bucket --endpoint --bucket-region --bucket-credentials --bucket-ca --cache --bucket-prices --json --quiet --help ;;
    "bucket pull") echo --json --quiet --help ;;
    "bucket verify") echo --endpoint --bucket-region --bucket-credentials --bucket-ca --data --json --quiet --help ;;
    "index stat") echo --json --help ;;
    "index verify") echo --json --quiet --help ;;
    "index dump") echo --names --json --help ;;
    "index rebuild") echo --json --quiet --help ;;
    "index plan") echo --entries --memory --flash --write-amplification --read-amplification --updates-per-second --erase-cycles --strategy --trie --use-all-memory --json --help ;;
    *) echo --help --version ;;
  esac
}

_siltfs() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command="" at=1
  case ${COMP_WORDS[0]##*/} in
    *.siltfs) command=${COMP_WORDS[0]##*/} ;;
    *) if ((COMP_CWORD > 1)); then command=${COMP_WORDS[1]} at=2; fi ;;
  esac
  if [[ $command == index || $command == snapshot || $command == quota || $command == bucket ]] && ((COMP_CWORD > at)); then command="$command ${COMP_WORDS[at]}"; fi
  COMPREPLY=()
  if [[ $command == report && $previous == -o ]]; then previous=--output; fi
  case $previous in
    --compression) mapfile -t COMPREPLY < <(compgen -W "zstd:3 none" -- "$current"); return ;;
    --delta) mapfile -t COMPREPLY < <(compgen -W "on off" -- "$current"); return ;;
    --index-engine) mapfile -t COMPREPLY < <(compgen -W "silt map buffer_hash slice_hash bloom_store skimpy_stash" -- "$current"); return ;;
    --strategy) mapfile -t COMPREPLY < <(compgen -W "default paper named+bounds hashed+tries hashed+bounds runs+bounds" -- "$current"); return ;;
    --trie) mapfile -t COMPREPLY < <(compgen -W "exact weak sparse" -- "$current"); return ;;
    --uuid) mapfile -t COMPREPLY < <(compgen -W "random original" -- "$current"); return ;;
    --chunk-avg | --chunk-min | --chunk-max | --label | --index-memory | --expected-chunks | --root-owner) return ;;
    --entries | --memory | --flash | --write-amplification | --read-amplification | --updates-per-second | --erase-cycles) return ;;
    --bytes | --files | --scrub-age | --nearly-full | --full | --backlog | --dead | --bucket-lag | --bucket-prices | --timeout | --listen | --message | --count) return ;;
    --event) mapfile -t COMPREPLY < <(compgen -W "test damage failure unit-failed" -- "$current"); return ;;
    --mountpoint) mapfile -t COMPREPLY < <(compgen -d -- "$current"); return ;;
    --output)
      mapfile -t COMPREPLY < <(compgen -f -- "$current")
      compopt -o filenames 2>/dev/null
      return
      ;;
    -C | --exclude | --keep-* | --base | --resume | --name | --abandon | -d | --max-depth | --min-size | --limit) return ;;
    -o | --options)
      local done=""
      [[ $current == *,* ]] && done=${current%,*},
      mapfile -t COMPREPLY < <(compgen -P "$done" -W "$_siltfs_mount_options" -- "${current##*,}")
      compopt -o nospace 2>/dev/null
      return
      ;;
  esac
  if [[ $current == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$(_siltfs_options "$command")" -- "$current")
  elif [[ -z $command ]]; then
    mapfile -t COMPREPLY < <(compgen -W "mkfs mount umount sync stat tune settle gc scrub fsck import export clone du find-duplicates snapshot quota send receive list check-health metrics report explain notify bucket index help version" -- "$current")
  elif [[ $command == help ]]; then
    mapfile -t COMPREPLY < <(compgen -W "mkfs mount umount sync stat tune settle gc scrub fsck import export clone du find-duplicates snapshot quota send receive list check-health metrics report explain notify bucket index" -- "$current")
  elif [[ $command == index ]]; then
    mapfile -t COMPREPLY < <(compgen -W "stat dump verify rebuild plan" -- "$current")
  elif [[ $command == snapshot ]]; then
    mapfile -t COMPREPLY < <(compgen -W "create list show rename delete diff rollback prune" -- "$current")
  elif [[ $command == quota ]]; then
    mapfile -t COMPREPLY < <(compgen -W "set show remove" -- "$current")
  elif [[ $command == bucket ]]; then
    mapfile -t COMPREPLY < <(compgen -W "push pull verify" -- "$current")
  elif [[ $command == "index plan" || $command == list || $command == explain ]]; then
    return
  elif [[ $command == import || $command == export || $command == clone || $command == du || $command == find-duplicates ]]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    compopt -o filenames 2>/dev/null
  elif ((COMP_CWORD >= at)); then
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
    compopt -o filenames 2>/dev/null
  fi
}

complete -F _siltfs siltfs mkfs.siltfs mount.siltfs umount.siltfs fsck.siltfs
