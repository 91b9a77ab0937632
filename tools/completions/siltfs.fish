# Made from --help by tools/completions/generate; do not edit.

# Whether the command line names these commands. If the first argument is a number, no other word
# may follow them.
function __siltfs_at
    set -l words (commandline -opc)
    set -e words[1]
    set -l only
    if string match -qr '^[0-9]+$' -- $argv[1]
        set only $argv[1]
        set -e argv[1]
    end
    set -l named
    for word in $words
        string match -q -- '-*' $word; or set -a named $word
    end
    if set -q only[1]; and test (count $named) -ne $only
        return 1
    end
    for place in (seq (count $argv))
        test "$named[$place]" = "$argv[$place]"; or return 1
    end
    return 0
end

function __siltfs_mount_options
    printf '%s\t%s\n' 'ro' 'read-only'
    printf '%s\t%s\n' 'allow_other' 'all users may use the mount, not only the user that made it'
    printf '%s\t%s\n' 'allow_root' 'the superuser may use the mount, too'
    printf '%s\t%s\n' 'noxattr' 'no extended attributes'
    printf '%s\t%s\n' 'uid=' 'show this user as the owner of all files'
    printf '%s\t%s\n' 'gid=' 'show this group as that of all files'
    printf '%s\t%s\n' 'umask=' 'show all files with the permission bits that the octal MASK lacks'
    printf '%s\t%s\n' 'nogc' 'collect garbage only when siltfs gc is run'
    printf '%s\t%s\n' 'index_memory=' 'memory for the index, instead of the size that mkfs has set'
    printf '%s\t%s\n' 'index_sync' 'index entries are durable at once, not only when the index is flushed'
    printf '%s\t%s\n' 'index_merge_rate=' 'most bytes per second that the index rewrites in the background'
    printf '%s\t%s\n' 'commit=' 'longest time until changes are durable (5)'
    printf '%s\t%s\n' 'log=' 'log to this file instead of to the system log'
    printf '%s\t%s\n' 'max_read=' 'largest read request'
    printf '%s\t%s\n' 'snapdir=hidden' 'the directory .snapshots of the root: "hidden" from listings, "visible" or "off" (hidden)'
    printf '%s\t%s\n' 'snapdir=visible' 'the directory .snapshots of the root: "hidden" from listings, "visible" or "off" (hidden)'
    printf '%s\t%s\n' 'snapdir=off' 'the directory .snapshots of the root: "hidden" from listings, "visible" or "off" (hidden)'
    printf '%s\t%s\n' 'snapshot=' 'this snapshot alone, read-only'
    printf '%s\t%s\n' 'io_uring=auto' 'get requests through io_uring if the kernel offers that (auto)'
    printf '%s\t%s\n' 'io_uring=on' 'get requests through io_uring if the kernel offers that (auto)'
    printf '%s\t%s\n' 'io_uring=off' 'get requests through io_uring if the kernel offers that (auto)'
    printf '%s\t%s\n' 'search=' 'where UUID= and LABEL= search for stores, separated by colons'
    printf '%s\t%s\n' 'debug' 'log every request'
    printf '%s\t%s\n' 'rw' 'as in mount(8)'
    printf '%s\t%s\n' 'suid' 'as in mount(8)'
    printf '%s\t%s\n' 'nosuid' 'as in mount(8)'
    printf '%s\t%s\n' 'dev' 'as in mount(8)'
    printf '%s\t%s\n' 'nodev' 'as in mount(8)'
    printf '%s\t%s\n' 'noexec' 'as in mount(8)'
    printf '%s\t%s\n' 'noatime' 'as in mount(8)'
    printf '%s\t%s\n' 'sync' 'as in mount(8)'
    printf '%s\t%s\n' 'dirsync' 'as in mount(8)'
end

complete -c siltfs -f
complete -c siltfs -n '__siltfs_at 0' -a mkfs -d 'Make a store'
complete -c siltfs -n '__siltfs_at 0' -a mount -d 'Mount a store'
complete -c siltfs -n '__siltfs_at 0' -a umount -d 'Unmount a store and wait until it is free'
complete -c siltfs -n '__siltfs_at 0' -a stat -d 'Show statistics of a store'
complete -c siltfs -n '__siltfs_at 0' -a tune -d 'Show or change the parameters of a store'
complete -c siltfs -n '__siltfs_at 0' -a fsck -d 'Check a store'
complete -c siltfs -n '__siltfs_at 0' -a sync -d 'Make all changes durable'
complete -c siltfs -n '__siltfs_at 0' -a settle -d 'Compress stored data again, more densely'
complete -c siltfs -n '__siltfs_at 0' -a gc -d 'Free the space of data that no file uses any more'
complete -c siltfs -n '__siltfs_at 0' -a scrub -d 'Verify all stored data'
complete -c siltfs -n '__siltfs_at 0' -a import -d 'Copy trees of files into a mounted store'
complete -c siltfs -n '__siltfs_at 0' -a export -d 'Copy a tree of files out of a mounted store'
complete -c siltfs -n '__siltfs_at 0' -a clone -d 'Copy a file or a tree within a mounted store, without copying data'
complete -c siltfs -n '__siltfs_at 0' -a du -d 'Show what paths take, and what their removal would free'
complete -c siltfs -n '__siltfs_at 0' -a find-duplicates -d 'List the largest files that are there several times'
complete -c siltfs -n '__siltfs_at 0' -a snapshot -d 'Keep states of a store under names'
complete -c siltfs -n '__siltfs_at 0' -a quota -d 'Limit what directories may hold'
complete -c siltfs -n '__siltfs_at 0' -a send -d 'Write a snapshot as a stream, for another store'
complete -c siltfs -n '__siltfs_at 0' -a receive -d 'Make a snapshot from a stream'
complete -c siltfs -n '__siltfs_at 0' -a list -d 'List the mounted stores'
complete -c siltfs -n '__siltfs_at 0' -a check-health -d 'Check a store for a monitoring system such as Nagios'
complete -c siltfs -n '__siltfs_at 0' -a metrics -d 'Print or serve the statistics of stores for Prometheus'
complete -c siltfs -n '__siltfs_at 0' -a report -d 'Make a page with plots of a store'
complete -c siltfs -n '__siltfs_at 0' -a explain -d 'Explain a message by its identifier'
complete -c siltfs -n '__siltfs_at 0' -a notify -d 'Run the hooks for damage, for example as a test'
complete -c siltfs -n '__siltfs_at 0' -a index -d 'Show, check, rebuild or plan the chunk index'
complete -c siltfs -n '__siltfs_at 0' -a help -d 'Print the help of a command'
complete -c siltfs -n '__siltfs_at 1 help' -a 'mkfs mount umount stat tune fsck sync settle gc scrub import export clone du find-duplicates snapshot quota send receive list check-health metrics report explain notify index'
complete -c siltfs -n '__siltfs_at 0' -l version -s V -s v -d 'Print the version and exit'
complete -c siltfs -n '__siltfs_at 0' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at mkfs' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at mkfs' -l chunk-avg -x -d 'Mean chunk size (8K)'
complete -c siltfs -n '__siltfs_at mkfs' -l chunk-min -x -d 'Smallest chunk (a quarter of the mean)'
complete -c siltfs -n '__siltfs_at mkfs' -l chunk-max -x -d 'Largest chunk (eight times the mean)'
complete -c siltfs -n '__siltfs_at mkfs' -l compression -x -a 'zstd:3 none' -d 'zstd:N with N from 1 to 19, or none (zstd:3)'
complete -c siltfs -n '__siltfs_at mkfs' -l delta -x -a 'on off' -d 'on or off: whether recompression stores chunks that resemble others as deltas (off)'
complete -c siltfs -n '__siltfs_at mkfs' -l index-engine -x -a 'silt map buffer_hash slice_hash bloom_store skimpy_stash' -d 'silt, or map, which keeps all entries in memory, or buffer_hash, which writes full ...'
complete -c siltfs -n '__siltfs_at mkfs' -l index-memory -x -d 'Memory for the index and its filter (44M)'
complete -c siltfs -n '__siltfs_at mkfs' -l index-option -x -d 'A parameter of the index engine that differs from its default; may be repeated'
complete -c siltfs -n '__siltfs_at mkfs' -l expected-chunks -x -d 'Choose the index\'s parameters for this number of chunks, within --index-memory ...'
complete -c siltfs -n '__siltfs_at mkfs' -l label -x -d 'Name of the store, by which it can be mounted; at most 64 bytes'
complete -c siltfs -n '__siltfs_at mkfs' -l root-owner -x -d 'Owner of the file system\'s root directory (the user and group that run mkfs)'
complete -c siltfs -n '__siltfs_at mkfs' -F
complete -c siltfs -n '__siltfs_at mount' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at mount' -l foreground -s f -d 'Stay in the foreground and log to standard error'
complete -c siltfs -n '__siltfs_at mount' -l options -s o -x -a '(__fish_append , (__siltfs_mount_options))' -d 'Mount options, separated by commas'
complete -c siltfs -n '__siltfs_at mount' -F
complete -c siltfs -n '__siltfs_at umount' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at umount' -s f -d 'If the daemon does not answer, abort the mount; unsynced data is lost'
complete -c siltfs -n '__siltfs_at umount' -s l -d 'Remove the mountpoint at once; the daemon ends when the last open file is closed'
complete -c siltfs -n '__siltfs_at umount' -s n -d 'Accepted and ignored, for umount(8)'
complete -c siltfs -n '__siltfs_at umount' -s v -d 'Accepted and ignored, for umount(8)'
complete -c siltfs -n '__siltfs_at umount' -s r -d 'Accepted and ignored, for umount(8)'
complete -c siltfs -n '__siltfs_at umount' -s t -x -d 'Accepted and ignored, for umount(8): the type'
complete -c siltfs -n '__siltfs_at umount' -F
complete -c siltfs -n '__siltfs_at stat' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at stat' -l json -d 'Print one JSON document instead of text'
complete -c siltfs -n '__siltfs_at stat' -l watch -x -d 'Show what the mounted store is doing, again after each number of seconds (1), until it ...'
complete -c siltfs -n '__siltfs_at stat' -F
complete -c siltfs -n '__siltfs_at tune' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at tune' -l compression -x -a 'zstd:3 none' -d 'zstd:N with N from 1 to 19, or none; for data that is written or recompressed from now on'
complete -c siltfs -n '__siltfs_at tune' -l index-memory -x -d 'Memory for the index and its filter'
complete -c siltfs -n '__siltfs_at tune' -l label -x -d 'Name of the store; an empty one removes the name'
complete -c siltfs -n '__siltfs_at tune' -l uuid -x -d 'A UUID, or random for a new one, or original for the one that mkfs has drawn'
complete -c siltfs -n '__siltfs_at tune' -l json -d 'Print one JSON document instead of text'
complete -c siltfs -n '__siltfs_at tune' -F
complete -c siltfs -n '__siltfs_at fsck' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at fsck' -s n -d 'Change nothing (the default)'
complete -c siltfs -n '__siltfs_at fsck' -s p -s a -d 'Make only repairs that lose no data'
complete -c siltfs -n '__siltfs_at fsck' -s y -d 'Repair everything repairable, and list lost data'
complete -c siltfs -n '__siltfs_at fsck' -s f -d 'Check the store even if it is marked clean (always done)'
complete -c siltfs -n '__siltfs_at fsck' -l data -d 'Read all data, too, and verify every chunk\'s name'
complete -c siltfs -n '__siltfs_at fsck' -l json -d 'Print one JSON document instead of one line for each finding'
complete -c siltfs -n '__siltfs_at fsck' -l quiet -d 'Show no progress'
complete -c siltfs -n '__siltfs_at fsck' -s C -x -d 'Write progress to this descriptor, for fsck(8); 0: no progress'
complete -c siltfs -n '__siltfs_at fsck' -s T -s v -d 'Accepted and ignored, for fsck(8)'
complete -c siltfs -n '__siltfs_at fsck' -F
complete -c siltfs -n '__siltfs_at sync' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at sync' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at sync' -F
complete -c siltfs -n '__siltfs_at settle' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at settle' -l json -d 'Print one JSON document instead of text'
complete -c siltfs -n '__siltfs_at settle' -F
complete -c siltfs -n '__siltfs_at gc' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at gc' -l dry-run -d 'Only print how much would be freed'
complete -c siltfs -n '__siltfs_at gc' -l json -d 'Print one JSON document instead of a sentence'
complete -c siltfs -n '__siltfs_at gc' -F
complete -c siltfs -n '__siltfs_at scrub' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at scrub' -l json -d 'Print one JSON document instead of a sentence'
complete -c siltfs -n '__siltfs_at scrub' -F
complete -c siltfs -n '__siltfs_at import' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at import' -l reference -r -F -d 'An earlier import in the same store: files that have not changed since are not read'
complete -c siltfs -n '__siltfs_at import' -l checksum -d 'Read all files'
complete -c siltfs -n '__siltfs_at import' -l delete -d 'Remove what the sources do not have from the directories that are imported'
complete -c siltfs -n '__siltfs_at import' -l exclude -x -d 'Leave out names or paths that match the pattern; may be given several times'
complete -c siltfs -n '__siltfs_at import' -l one-file-system -d 'Import directories on other file systems without their contents'
complete -c siltfs -n '__siltfs_at import' -l dry-run -d 'Print what would be done, and do nothing'
complete -c siltfs -n '__siltfs_at import' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at import' -F
complete -c siltfs -n '__siltfs_at export' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at export' -l verify -d 'Read back what was written, and compare it'
complete -c siltfs -n '__siltfs_at export' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at export' -F
complete -c siltfs -n '__siltfs_at clone' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at clone' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at clone' -F
complete -c siltfs -n '__siltfs_at du' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at du' -l max-depth -s d -x -d 'Also show the directories below each path that are at most so many levels deep'
complete -c siltfs -n '__siltfs_at du' -l summarize -s s -d 'Show each path alone, as without --max-depth'
complete -c siltfs -n '__siltfs_at du' -l bytes -s b -d 'Print sizes in bytes instead of units'
complete -c siltfs -n '__siltfs_at du' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at du' -l quiet -d 'Show no progress'
complete -c siltfs -n '__siltfs_at du' -F
complete -c siltfs -n '__siltfs_at find-duplicates' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at find-duplicates' -l min-size -x -d 'Leave out smaller files'
complete -c siltfs -n '__siltfs_at find-duplicates' -l limit -x -d 'Show at most so many groups, and pairs, those that save most; 20 by default'
complete -c siltfs -n '__siltfs_at find-duplicates' -l partial -d 'Also show pairs of files that have a part of their content in common'
complete -c siltfs -n '__siltfs_at find-duplicates' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at find-duplicates' -l quiet -d 'Show no progress'
complete -c siltfs -n '__siltfs_at find-duplicates' -F
complete -c siltfs -n '__siltfs_at 1 snapshot' -a create -d 'Keep the present state of the store under a name'
complete -c siltfs -n '__siltfs_at 1 snapshot' -a list -d 'List all snapshots'
complete -c siltfs -n '__siltfs_at 1 snapshot' -a show -d 'Show one snapshot'
complete -c siltfs -n '__siltfs_at 1 snapshot' -a rename -d 'Give a snapshot another name'
complete -c siltfs -n '__siltfs_at 1 snapshot' -a delete -d 'Delete snapshots'
complete -c siltfs -n '__siltfs_at 1 snapshot' -a diff -d 'List the paths that differ between two snapshots'
complete -c siltfs -n '__siltfs_at 1 snapshot' -a rollback -d 'Change all files back to what they are in a snapshot'
complete -c siltfs -n '__siltfs_at 1 snapshot' -a prune -d 'Delete old snapshots by rules'
complete -c siltfs -n '__siltfs_at 1 snapshot' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot create' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot create' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot create' -F
complete -c siltfs -n '__siltfs_at snapshot list' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot list' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot list' -l no-sizes -d 'Do not count new and freed bytes, which takes a walk through all metadata'
complete -c siltfs -n '__siltfs_at snapshot list' -F
complete -c siltfs -n '__siltfs_at snapshot show' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot show' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot show' -l no-sizes -d 'Do not count new and freed bytes, which takes a walk through all metadata'
complete -c siltfs -n '__siltfs_at snapshot show' -F
complete -c siltfs -n '__siltfs_at snapshot rename' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot rename' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot rename' -F
complete -c siltfs -n '__siltfs_at snapshot delete' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot delete' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot delete' -F
complete -c siltfs -n '__siltfs_at snapshot diff' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot diff' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot diff' -F
complete -c siltfs -n '__siltfs_at snapshot rollback' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot rollback' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot rollback' -l keep-as -x -d 'The name of the snapshot that keeps the present state; by default before-rollback- and ...'
complete -c siltfs -n '__siltfs_at snapshot rollback' -F
complete -c siltfs -n '__siltfs_at snapshot prune' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at snapshot prune' -l keep-last -x -d 'Keep the newest N snapshots'
complete -c siltfs -n '__siltfs_at snapshot prune' -l keep-hourly -x -d 'Keep the newest snapshot of each of the newest N hours that have one'
complete -c siltfs -n '__siltfs_at snapshot prune' -l keep-daily -x -d 'Keep the newest snapshot of each of the newest N days that have one'
complete -c siltfs -n '__siltfs_at snapshot prune' -l keep-weekly -x -d 'Keep the newest snapshot of each of the newest N weeks that have one'
complete -c siltfs -n '__siltfs_at snapshot prune' -l keep-monthly -x -d 'Keep the newest snapshot of each of the newest N months that have one'
complete -c siltfs -n '__siltfs_at snapshot prune' -l keep-yearly -x -d 'Keep the newest snapshot of each of the newest N years that have one'
complete -c siltfs -n '__siltfs_at snapshot prune' -l dry-run -d 'Only print what would be deleted'
complete -c siltfs -n '__siltfs_at snapshot prune' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at snapshot prune' -F
complete -c siltfs -n '__siltfs_at 1 quota' -a set -d 'Limit what a directory may hold'
complete -c siltfs -n '__siltfs_at 1 quota' -a show -d 'Show limits and usage'
complete -c siltfs -n '__siltfs_at 1 quota' -a remove -d 'Remove the limits of a directory'
complete -c siltfs -n '__siltfs_at 1 quota' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at quota set' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at quota set' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at quota set' -l bytes -x -d 'Most logical bytes of the files below; 0: no limit'
complete -c siltfs -n '__siltfs_at quota set' -l files -x -d 'Most files and directories below; 0: no limit'
complete -c siltfs -n '__siltfs_at quota set' -F
complete -c siltfs -n '__siltfs_at quota show' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at quota show' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at quota show' -F
complete -c siltfs -n '__siltfs_at quota remove' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at quota remove' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at quota remove' -F
complete -c siltfs -n '__siltfs_at send' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at send' -l base -x -d 'Send only what differs from this older snapshot, which the receiver has: its name, or ...'
complete -c siltfs -n '__siltfs_at send' -l two-way -d 'Read the answers of siltfs receive --two-way from standard input, and send no chunks ...'
complete -c siltfs -n '__siltfs_at send' -l resume -x -d 'Continue a transfer that ended early, from the token that siltfs receive --token prints'
complete -c siltfs -n '__siltfs_at send' -l json -d 'Print one JSON document on standard error'
complete -c siltfs -n '__siltfs_at send' -F
complete -c siltfs -n '__siltfs_at receive' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at receive' -l name -x -d 'The name of the new snapshot; by default the name that it has at the sender. With ...'
complete -c siltfs -n '__siltfs_at receive' -l two-way -d 'Write answers for siltfs send --two-way to standard output'
complete -c siltfs -n '__siltfs_at receive' -l token -d 'Receive nothing; print the token with which a transfer that ended early is continued'
complete -c siltfs -n '__siltfs_at receive' -l abandon -x -d 'Receive nothing; discard what a transfer of this name that ended early has left'
complete -c siltfs -n '__siltfs_at receive' -l json -d 'Print one JSON document, with --two-way on standard error'
complete -c siltfs -n '__siltfs_at receive' -F
complete -c siltfs -n '__siltfs_at list' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at list' -l json -d 'Print one JSON document instead of a table'
complete -c siltfs -n '__siltfs_at check-health' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at check-health' -l scrub-age -x -d 'Warn if all data were last verified more than this number of days ago'
complete -c siltfs -n '__siltfs_at check-health' -l nearly-full -x -d 'Warn if this part of the disk below the store is in use'
complete -c siltfs -n '__siltfs_at check-health' -l full -x -d 'Critical if this part of the disk below the store is in use'
complete -c siltfs -n '__siltfs_at check-health' -l backlog -x -d 'Warn if more data than this await recompression'
complete -c siltfs -n '__siltfs_at check-health' -l dead -x -d 'Warn if this part of the stored data is dead'
complete -c siltfs -n '__siltfs_at check-health' -l timeout -x -d 'How long to wait for the answer of the store\'s daemon'
complete -c siltfs -n '__siltfs_at check-health' -l mounted -d 'Critical if the store is not mounted'
complete -c siltfs -n '__siltfs_at check-health' -l json -d 'Print one JSON document instead of a line'
complete -c siltfs -n '__siltfs_at check-health' -F
complete -c siltfs -n '__siltfs_at metrics' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at metrics' -l output -r -F -d 'Replace this file at once as a whole, instead of printing the metrics'
complete -c siltfs -n '__siltfs_at metrics' -l listen -x -d 'Serve the metrics of all mounted stores over HTTP, on ADDRESS:PORT or unix:PATH'
complete -c siltfs -n '__siltfs_at metrics' -F
complete -c siltfs -n '__siltfs_at report' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at report' -l output -s o -r -F -d 'Replace this file at once as a whole with the page (HTML)'
complete -c siltfs -n '__siltfs_at report' -l quiet -d 'Show no progress'
complete -c siltfs -n '__siltfs_at report' -F
complete -c siltfs -n '__siltfs_at explain' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at explain' -l json -d 'Print one JSON document'
complete -c siltfs -n '__siltfs_at notify' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at notify' -l event -x -d 'The kind of event, for the hooks'
complete -c siltfs -n '__siltfs_at notify' -l message -x -d 'One sentence for people'
complete -c siltfs -n '__siltfs_at notify' -l count -x -d 'What the message counts, such as damaged blocks'
complete -c siltfs -n '__siltfs_at notify' -l mountpoint -x -d 'Where the store is mounted'
complete -c siltfs -n '__siltfs_at notify' -l timeout -x -d 'Longest time for each hook'
complete -c siltfs -n '__siltfs_at notify' -F
complete -c siltfs -n '__siltfs_at 1 index' -a stat -d 'Show the chunk index and its component stores'
complete -c siltfs -n '__siltfs_at 1 index' -a dump -d 'Print every entry of the chunk index'
complete -c siltfs -n '__siltfs_at 1 index' -a verify -d 'Check every page and every entry of the chunk index'
complete -c siltfs -n '__siltfs_at 1 index' -a rebuild -d 'Rebuild the chunk index from the segments'
complete -c siltfs -n '__siltfs_at 1 index' -a plan -d 'Choose the index\'s parameters for a machine and predict their cost'
complete -c siltfs -n '__siltfs_at 1 index' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at index stat' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at index stat' -l json -d 'Print one JSON document instead of text'
complete -c siltfs -n '__siltfs_at index stat' -F
complete -c siltfs -n '__siltfs_at index dump' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at index dump' -l names -d 'Adds each chunk\'s name, which is read from its segment'
complete -c siltfs -n '__siltfs_at index dump' -l json -d 'No effect: each entry is always one line of JSON'
complete -c siltfs -n '__siltfs_at index dump' -F
complete -c siltfs -n '__siltfs_at index verify' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at index verify' -l json -d 'Print one JSON document instead of one line for each finding'
complete -c siltfs -n '__siltfs_at index verify' -F
complete -c siltfs -n '__siltfs_at index rebuild' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at index rebuild' -l json -d 'Print one JSON document instead of a sentence'
complete -c siltfs -n '__siltfs_at index rebuild' -l quiet -d 'Show no progress'
complete -c siltfs -n '__siltfs_at index rebuild' -F
complete -c siltfs -n '__siltfs_at index plan' -l help -s h -d 'Print this help and exit'
complete -c siltfs -n '__siltfs_at index plan' -l entries -x -d 'Number of chunks in the index; accepts the suffixes of sizes'
complete -c siltfs -n '__siltfs_at index plan' -l memory -x -d 'Limit of the index\'s peak memory'
complete -c siltfs -n '__siltfs_at index plan' -l flash -x -d 'Size of the flash device; the index may use all of it'
complete -c siltfs -n '__siltfs_at index plan' -l write-amplification -x -d 'Limit of writes per entry (5 with sorted runs, else 5.4)'
complete -c siltfs -n '__siltfs_at index plan' -l read-amplification -x -d 'Limit of flash reads per lookup (1.01)'
complete -c siltfs -n '__siltfs_at index plan' -l updates-per-second -x -d 'Entries put per second (5000)'
complete -c siltfs -n '__siltfs_at index plan' -l erase-cycles -x -d 'Erase cycles that the device lasts (10000)'
complete -c siltfs -n '__siltfs_at index plan' -l strategy -x -a 'default paper named+bounds hashed+tries hashed+bounds runs+bounds' -d 'Slots and index of sorted entries: default, paper, named+bounds, hashed+tries ...'
complete -c siltfs -n '__siltfs_at index plan' -l trie -x -a 'exact weak sparse' -d 'Index sorted entries with a trie that is exact, weak or sparse'
complete -c siltfs -n '__siltfs_at index plan' -l use-all-memory -d 'Use all of the memory to reduce writes; without this, use as little memory as possible'
complete -c siltfs -n '__siltfs_at index plan' -l json -d 'Print one JSON document instead of a table'
complete -c mkfs.siltfs -f
complete -c mkfs.siltfs -l version -s V -d 'Print the version and exit'
complete -c mkfs.siltfs -l help -s h -d 'Print this help and exit'
complete -c mkfs.siltfs -l chunk-avg -x -d 'Mean chunk size (8K)'
complete -c mkfs.siltfs -l chunk-min -x -d 'Smallest chunk (a quarter of the mean)'
complete -c mkfs.siltfs -l chunk-max -x -d 'Largest chunk (eight times the mean)'
complete -c mkfs.siltfs -l compression -x -a 'zstd:3 none' -d 'zstd:N with N from 1 to 19, or none (zstd:3)'
complete -c mkfs.siltfs -l delta -x -a 'on off' -d 'on or off: whether recompression stores chunks that resemble others as deltas (off)'
complete -c mkfs.siltfs -l index-engine -x -a 'silt map buffer_hash slice_hash bloom_store skimpy_stash' -d 'silt, or map, which keeps all entries in memory, or buffer_hash, which writes full ...'
complete -c mkfs.siltfs -l index-memory -x -d 'Memory for the index and its filter (44M)'
complete -c mkfs.siltfs -l index-option -x -d 'A parameter of the index engine that differs from its default; may be repeated'
complete -c mkfs.siltfs -l expected-chunks -x -d 'Choose the index\'s parameters for this number of chunks, within --index-memory ...'
complete -c mkfs.siltfs -l label -x -d 'Name of the store, by which it can be mounted; at most 64 bytes'
complete -c mkfs.siltfs -l root-owner -x -d 'Owner of the file system\'s root directory (the user and group that run mkfs)'
complete -c mkfs.siltfs -F
complete -c mount.siltfs -f
complete -c mount.siltfs -l version -s V -d 'Print the version and exit'
complete -c mount.siltfs -l help -s h -d 'Print this help and exit'
complete -c mount.siltfs -s o -x -a '(__fish_append , (__siltfs_mount_options))' -d 'Mount options, separated by commas (see siltfs mount --help)'
complete -c mount.siltfs -s s -d 'Accepted and ignored: unknown options are always refused'
complete -c mount.siltfs -s f -d 'Check everything, but do not mount'
complete -c mount.siltfs -s n -d 'Accepted and ignored: there is no table to write'
complete -c mount.siltfs -s v -d 'Accepted and ignored'
complete -c mount.siltfs -s t -x -d 'Accepted and ignored: the type'
complete -c mount.siltfs -F
complete -c umount.siltfs -f
complete -c umount.siltfs -l version -s V -d 'Print the version and exit'
complete -c umount.siltfs -l help -s h -d 'Print this help and exit'
complete -c umount.siltfs -s f -d 'If the daemon does not answer, abort the mount; unsynced data is lost'
complete -c umount.siltfs -s l -d 'Remove the mountpoint at once; the daemon ends when the last open file is closed'
complete -c umount.siltfs -s n -d 'Accepted and ignored, for umount(8)'
complete -c umount.siltfs -s v -d 'Accepted and ignored, for umount(8)'
complete -c umount.siltfs -s r -d 'Accepted and ignored, for umount(8)'
complete -c umount.siltfs -s t -x -d 'Accepted and ignored, for umount(8): the type'
complete -c umount.siltfs -F
complete -c fsck.siltfs -f
complete -c fsck.siltfs -l version -s V -d 'Print the version and exit'
complete -c fsck.siltfs -l help -s h -d 'Print this help and exit'
complete -c fsck.siltfs -s n -d 'Change nothing (the default)'
complete -c fsck.siltfs -s p -s a -d 'Make only repairs that lose no data'
complete -c fsck.siltfs -s y -d 'Repair everything repairable, and list lost data'
complete -c fsck.siltfs -s f -d 'Check the store even if it is marked clean (always done)'
complete -c fsck.siltfs -l data -d 'Read all data, too, and verify every chunk\'s name'
complete -c fsck.siltfs -l json -d 'Print one JSON document instead of one line for each finding'
complete -c fsck.siltfs -l quiet -d 'Show no progress'
complete -c fsck.siltfs -s C -x -d 'Write progress to this descriptor, for fsck(8); 0: no progress'
complete -c fsck.siltfs -s T -s v -d 'Accepted and ignored, for fsck(8)'
complete -c fsck.siltfs -F
