// siltfs send
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "fs/interface/file_system.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/store_place.h"
#include "tools/siltfs/transfer_command.h"

namespace siltfs {
namespace {

struct SendArguments {
  std::string snapshot;
  std::string base;
  std::string resume;
  bool two_way = false;
  bool json = false;
  bool quiet = false;
};

constexpr std::string_view kDirectory = ".snapshots";

// A snapshot, and the store that it is in.
struct Named {
  std::string place;
  std::string name;
};

std::string WithoutEndSlashes(std::string path) {
  const size_t end = path.find_last_not_of('/');
  path.resize(end == std::string::npos ? 0 : end + 1);
  return path;
}

// Splits PLACE/.snapshots/NAME. The path need not exist: that of an unmounted store does not.
Result<Named> SplitSnapshotPath(const std::string& path) {
  const Status malformed(
      StatusCode::kInvalidArgument,
      fmt::format("\"{}\" is no snapshot: it must be MOUNTPOINT/.snapshots/NAME, or "
                  "STORE/.snapshots/NAME for a store that is not mounted",
                  path));
  const std::string whole = WithoutEndSlashes(path);
  const size_t slash = whole.rfind('/');
  if (slash == std::string::npos) return malformed;
  const std::string directory = WithoutEndSlashes(whole.substr(0, slash));
  const size_t directory_slash = directory.rfind('/');
  const size_t begin = directory_slash == std::string::npos ? 0 : directory_slash + 1;
  if (std::string_view(directory).substr(begin) != kDirectory) return malformed;
  Named named{.place = WithoutEndSlashes(directory.substr(0, begin)),
              .name = whole.substr(slash + 1)};
  if (!IsName(named.name)) return malformed;
  if (named.place.empty()) named.place = begin == 0 ? "." : "/";
  malformed.IgnoreError("the path is well formed");
  return named;
}

// The name of the base, which is given by its name or by its path.
Result<std::string> BaseName(const std::string& base, const std::string& place) {
  if (base.find('/') == std::string::npos) return base;
  SILTFS_ASSIGN_OR_RETURN(Named named, SplitSnapshotPath(base));
  if (named.place == place) return std::move(named.name);
  SILTFS_ASSIGN_OR_RETURN(const auto address, AddressAt(place));
  SILTFS_ASSIGN_OR_RETURN(const auto base_address, AddressAt(named.place));
  if (address.store == base_address.store) return std::move(named.name);
  return Status(StatusCode::kInvalidArgument,
                fmt::format("the base \"{}\" is not in the same store as the snapshot", base));
}

Result<nlohmann::json> Send(const SendArguments& arguments, Surroundings& surroundings) {
  SILTFS_ASSIGN_OR_RETURN(const Named named, SplitSnapshotPath(arguments.snapshot));
  WantedSend wanted{
      .snapshot = named.name, .resume = arguments.resume, .two_way = arguments.two_way};
  if (!arguments.base.empty()) {
    SILTFS_ASSIGN_OR_RETURN(wanted.base, BaseName(arguments.base, named.place));
  }
  return RunTransfer(
      surroundings,
      {.place = named.place,
       .access = SnapshotAccess::kRead,
       .command = "send",
       .afterwards = "the store is as it was; siltfs receive --token at the receiver prints the "
                     "token with which --resume continues",
       .quiet = arguments.quiet},
      {.input = arguments.two_way, .output = true},
      [&](SnapshotPlace& store, PipedStreams& pipes, const std::function<Status()>& check) {
        return store.Send(wanted, pipes, check);
      });
}

ExitCode PerformSend(const SendArguments& arguments, Surroundings& surroundings) {
  Surroundings results = WithResultsOnErr(surroundings);
  const auto sent = Send(arguments, results);
  if (!sent.ok()) return Fail(results, sent.status());
  if (arguments.json) PrintJson(results, *sent);
  return ExitCode::kDone;
}

}  // namespace

std::function<ExitCode()> ConfigureSend(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<SendArguments>();
  app.add_option("SNAPSHOT", arguments->snapshot,
                 "MOUNTPOINT/.snapshots/NAME, or STORE/.snapshots/NAME if the store is not mounted")
      ->required();
  app.add_option("--base", arguments->base,
                 "Send only what differs from this older snapshot, which the receiver has: its "
                 "name, or its path");
  app.add_flag("--two-way", arguments->two_way,
               "Read the answers of siltfs receive --two-way from standard input, and send no "
               "chunks that the receiver has");
  app.add_option("--resume", arguments->resume,
                 "Continue a transfer that ended early, from the token that siltfs receive --token "
                 "prints");
  app.add_flag("--json", arguments->json, "Print one JSON document on standard error");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return PerformSend(*arguments, surroundings); };
}

}  // namespace siltfs
