#include "fs/fuse/session_mount.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fs/fuse/fuse_log_capture.h"
#include "store/env/process.h"

namespace siltfs::fuse {
namespace {

// libfuse splits options at unescaped commas.
std::string Escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ',' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

// In a store made by a user, set-id programs and device nodes would give that user the rights of
// others.
bool NeedsSuperuser(std::string_view option) { return option == "suid" || option == "dev"; }

std::vector<std::string> MakeArguments(const FuseBindingOptions& options) {
  std::vector<std::string> arguments = {"siltfs"};
  const auto add = [&](std::string option) {
    arguments.insert(arguments.end(), {"-o", std::move(option)});
  };
  add("default_permissions");
  add("fsname=" + Escaped(options.store));
  add(std::string("subtype=") + FuseBinding::kSubtype);
  if (options.mount.read_only) add("ro");
  if (options.mount.allow_other) add("allow_other");
  if (options.mount.allow_root) add("allow_root");
  if (options.mount.debug) add("debug");
  if (options.mount.max_read) add(fmt::format("max_read={}", *options.mount.max_read));
  for (const std::string& option : options.mount.passed_on) {
    if (CurrentUserId() == 0 || !NeedsSuperuser(option)) {
      add(Escaped(option));
    } else if (options.log) {
      options.log->warn("{}: mount option \"{}\" is ignored because only the superuser may use it",
                        options.mountpoint, option);
    }
  }
  return arguments;
}

bool AsksForSecurityContext(const MountOptions& mount) {
  return std::any_of(mount.passed_on.begin(), mount.passed_on.end(), [](const std::string& option) {
    return option.substr(0, option.find('=')).ends_with("context");
  });
}

Status Failure(const FuseBindingOptions& options, std::string_view what,
               const FuseLogCapture& log) {
  std::string cause(what);
  if (!log.text().empty()) cause += fmt::format(" ({})", log.text());
  if (AsksForSecurityContext(options.mount)) {
    cause += "; the context= options need a kernel on which SELinux is enabled";
  }
  return Status(StatusCode::kIoError, std::move(cause)).At(options.mountpoint);
}

Result<SessionPointer> MakeSession(const FuseBindingOptions& options,
                                   const fuse_lowlevel_ops& operations, void* user_data,
                                   const FuseLogCapture& log) {
  std::vector<std::string> arguments = MakeArguments(options);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  fuse_args args = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());
  SessionPointer session(fuse_session_new(&args, &operations, sizeof operations, user_data));
  fuse_opt_free_args(&args);
  if (!session) return Failure(options, "libfuse refuses the mount options", log);
  return session;
}

}  // namespace

Result<SessionPointer> NewSession(const FuseBindingOptions& options,
                                  const fuse_lowlevel_ops& operations, void* user_data) {
  const FuseLogCapture log;
  return MakeSession(options, operations, user_data, log);
}

Result<SessionPointer> MountSession(const FuseBindingOptions& options,
                                    const fuse_lowlevel_ops& operations, void* user_data) {
  const FuseLogCapture log;
  SILTFS_ASSIGN_OR_RETURN(SessionPointer session, MakeSession(options, operations, user_data, log));
  if (fuse_session_mount(session.get(), options.mountpoint.c_str()) != 0)
    return Failure(options, "cannot be mounted", log);
  return session;
}

}  // namespace siltfs::fuse
