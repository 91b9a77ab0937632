// The command siltfs mount, and the program mount.siltfs that mount(8) calls.
#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>

#include "store/env/process.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/mount_store.h"
#include "tools/siltfs/store_bucket_options.h"

namespace siltfs {

std::function<ExitCode()> ConfigureMount(CLI::App& app, Surroundings& surroundings) {
  auto request = std::make_shared<MountRequest>();
  app.add_option("STORE", request->store,
                 "The store's directory, or UUID=UUID or LABEL=LABEL of a store in a place that "
                 "/etc/siltfs/stores lists")
      ->required();
  app.add_option("MOUNTPOINT", request->mountpoint, "Directory to mount it on")->required();
  app.add_option(
         "--cache", request->directory,
         "For a STORE that is s3://NAME/PREFIX: the directory of its local part, which is made "
         "from the bucket if it is not there")
      ->type_name("DIR");
  AddServiceOptions(app, request->bucket);
  app.add_flag("--take-over", request->take_over,
               "Mount a store in a bucket although another machine seems to have it mounted");
  app.add_flag("-f,--foreground", request->foreground,
               "Stay in the foreground and log to standard error");
  app.add_option("--part", request->part,
                 "Only a part of the mount, for services that split it: \"serve\" opens the store "
                 "and serves it in the foreground, when \"mount\" has mounted it, with the same "
                 "options; \"remove\" removes the mounts of the store whose daemon has ended")
      ->transform(
          CLI::Transformer(std::map<std::string, MountPart>{{"serve", MountPart::kServe},
                                                            {"mount", MountPart::kMount},
                                                            {"remove", MountPart::kRemove}}));
  app.add_flag("--quiet", request->quiet, "Show no progress");
  app.add_option("-o,--options", request->options, "Mount options, separated by commas")
      ->type_name("OPT,...")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.footer(
      "Mount options:\n"
      "  ro                    read-only\n"
      "  allow_other           all users may use the mount, not only the user that made it\n"
      "  allow_root            the superuser may use the mount, too\n"
      "  noxattr               no extended attributes\n"
      "  uid=N                 show this user as the owner of all files\n"
      "  gid=N                 show this group as that of all files\n"
      "  umask=MASK            show all files with the permission bits that the octal MASK lacks\n"
      "  nogc                  collect garbage only when siltfs gc is run\n"
      "  index_memory=SIZE     memory for the index, instead of the size that mkfs has set\n"
      "  index_sync            index entries are durable at once, not only when the index is "
      "flushed\n"
      "  index_merge_rate=SIZE most bytes per second that the index rewrites in the background\n"
      "  commit=SECONDS        longest time until changes are durable (5)\n"
      "  bucket_timeout=SECONDS how long a read waits for a bucket that fails (120)\n"
      "  follow=SECONDS        how often a read-only mount of a bucket looks for changes (5)\n"
      "  reader_age=SECONDS    when the writer gives up such a mount that is silent (600)\n"
      "  sync=PLACE            fsync means the \"local\" disk or the \"bucket\" (local)\n"
      "  log=FILE              log to this file instead of to the system log\n"
      "  max_read=BYTES        largest read request\n"
      "  snapdir=MODE          the directory .snapshots of the root: \"hidden\" from listings, "
      "\"visible\" or \"off\" (hidden)\n"
      "  snapshot=NAME         this snapshot alone, read-only\n"
      "  io_uring=auto|on|off  get requests through io_uring if the kernel offers that (auto)\n"
      "  search=PATHS          where UUID= and LABEL= search for stores, separated by colons\n"
      "  debug                 log every request\n"
      "Also suid and dev (only for the superuser; off by default), nosuid, nodev, noexec,\n"
      "noatime, sync, dirsync and context=..., as in mount(8).");
  return [request, &surroundings] {
    if (NamesBucket(request->store)) request->bucket.bucket = request->store;
    return MountStore(*request, surroundings);
  };
}

std::function<int()> ConfigureMountHelper(CLI::App& app, Surroundings& surroundings) {
  struct Arguments {
    MountRequest request;
    bool sloppy = false;
    bool no_mtab = false;
    bool verbose = false;
    std::string type;
  };
  auto arguments = std::make_shared<Arguments>();
  app.add_option("STORE", arguments->request.store,
                 "The store's directory, or siltfs-uuid:UUID or siltfs-label:LABEL of a store")
      ->required();
  app.add_option("MOUNTPOINT", arguments->request.mountpoint, "Directory to mount it on")
      ->required();
  app.add_option("-o", arguments->request.options,
                 "Mount options, separated by commas (see siltfs mount --help)")
      ->type_name("OPT,...")
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_flag("-s", arguments->sloppy, "Accepted and ignored: unknown options are always refused");
  app.add_flag("-f", arguments->request.check_only, "Check everything, but do not mount");
  app.add_flag("-n", arguments->no_mtab, "Accepted and ignored: there is no table to write");
  app.add_flag("-v", arguments->verbose, "Accepted and ignored");
  app.add_option("-t", arguments->type, "Accepted and ignored: the type")->type_name("TYPE");
  return [arguments, &surroundings] {
    arguments->request.is_helper = true;
    arguments->request.quiet = !surroundings.err_is_terminal;  // mount(8) prints no progress
    // suid and dev are defaults of mount(8), but mount(8) does not pass them. If another user than
    // the superuser mounts, mount(8) runs this program with that user's rights.
    if (CurrentUserId() == 0)
      arguments->request.options.insert(arguments->request.options.begin(), "suid,dev");
    return static_cast<int>(ToMountHelperCode(MountStore(arguments->request, surroundings)));
  };
}

}  // namespace siltfs
