// siltfs quota: limits of directories in a mounted store (docs/quotas.md).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <utility>
#include <vector>

#include "fs/control/client.h"
#include "store/base/size_text.h"
#include "store/env/mountpoint.h"
#include "store/env/source_tree.h"
#include "tools/siltfs/command.h"
#include "tools/siltfs/json_output.h"
#include "tools/siltfs/long_command.h"
#include "tools/siltfs/printable_text.h"
#include "tools/siltfs/size_option.h"
#include "tools/siltfs/store_place.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

constexpr std::chrono::seconds kPatienceOfLook{1};

struct QuotaArguments {
  std::string directory;
  std::vector<std::string> places;
  std::optional<std::string> bytes;
  std::optional<std::string> files;
  bool json = false;
  bool quiet = false;
};

// A directory in a mount.
struct Place {
  control::DaemonAddress address;
  uint64_t inode = 0;
  bool is_mountpoint = false;
};

Result<Place> Find(const std::string& path) {
  const auto opened = SourceDirectory::OpenForNames(path);
  // A missing path is no missing store, which has its own exit code.
  if (opened.status().Is(StatusCode::kNotFound))
    return Status(StatusCode::kIoError, "there is no such directory").At(path);
  SILTFS_RETURN_IF_ERROR(opened.status());
  SILTFS_ASSIGN_OR_RETURN(const SourceAttributes attributes, (*opened)->Attributes());
  Place place;
  SILTFS_ASSIGN_OR_RETURN(place.address, AddressAround(path));
  if (place.address.mountpoint.empty())
    return Status(StatusCode::kNotFound, "is not in a mounted siltfs file system").At(path);
  place.inode = attributes.inode;
  SILTFS_ASSIGN_OR_RETURN(const auto mount, FindMount(path));
  place.is_mountpoint = mount.has_value();
  return place;
}

Result<Json> Ask(const Place& place, Json arguments,
                 const control::Patience& patience = control::Patience::WhileItRuns()) {
  return control::AskWith(place.address, {.command = "quota", .arguments = std::move(arguments)},
                          patience);
}

// The path of a quota as users see it.
std::string ShownPath(const Json& quota, const std::string& mountpoint) {
  const auto path = quota.value("path", std::string());
  if (path.empty()) return fmt::format("inode {}", quota.value("directory", uint64_t{0}));
  if (path == "/") return mountpoint;
  return mountpoint == "/" ? path : mountpoint + path;
}

std::string Line(const Json& quota, const std::string& mountpoint) {
  const auto part = [&quota](const char* used, const char* limit, auto text) {
    const std::string most = quota.at(limit).is_null() ? "no limit" : text(quota.at(limit));
    return fmt::format("{:>10} of {:>10}", text(quota.at(used)), most);
  };
  return fmt::format(
      "{}  {} files  {}\n",
      part("bytes", "bytes_limit",
           [](const Json& number) { return FormatSize(number.get<uint64_t>()); }),
      part("files", "files_limit",
           [](const Json& number) { return std::to_string(number.get<uint64_t>()); }),
      Printable(ShownPath(quota, mountpoint)));
}

// How many inodes the daemon has counted.
LongCommand::Look LookAtCount(const Place& place) {
  return [address = place.address]() -> WorkProgress {
    const auto answer = control::Ask(address, "quota progress",
                                     {.answer = kPatienceOfLook, .stopped = kPatienceOfLook});
    if (!answer.ok()) {
      answer.status().IgnoreError("the command itself reports a daemon that does not answer");
      return {};
    }
    return {"files", answer->value("counted", uint64_t{0}), 0};
  };
}

ExitCode FailAt(Surroundings& surroundings, Status failure, const std::string& path) {
  if (failure.path().empty()) failure = std::move(failure).At(path);
  return Fail(surroundings, failure);
}

ExitCode Print(Surroundings& surroundings, const QuotaArguments& arguments, const Place& place,
               const Json& quota) {
  if (arguments.json) {
    PrintJson(surroundings, quota);
  } else {
    surroundings.out << Line(quota, place.address.mountpoint) << std::flush;
  }
  return ExitCode::kDone;
}

Result<Json> LimitsOf(const QuotaArguments& arguments, uint64_t inode) {
  Json wanted = {{"action", "set"}, {"directory", inode}};
  if (arguments.bytes) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t bytes, ParseSizeOption("--bytes", *arguments.bytes));
    wanted["bytes"] = bytes;
  }
  if (arguments.files) {
    SILTFS_ASSIGN_OR_RETURN(const uint64_t files, ParseSizeOption("--files", *arguments.files));
    wanted["files"] = files;
  }
  return wanted;
}

// Makes the kernel send the data that it holds, because they would count only later. If the
// directory has a quota already, they count anyway; and when the limit is raised, they must get the
// new limit first, or they fail.
Status SyncBefore(const Place& place) {
  const auto present = Ask(place, {{"action", "show"}, {"inode", place.inode}});
  if (present.ok() && present->value("directory", uint64_t{0}) == place.inode) return Status::Ok();
  if (!present.ok() && !present.status().Is(StatusCode::kNoAttribute)) return present.status();
  return SendWrites(place.address.mountpoint);
}

// Finds the directory, sets its limits, and returns the quota.
Result<Json> SetLimits(const QuotaArguments& arguments, Place& place, LongCommand& command) {
  SILTFS_ASSIGN_OR_RETURN(place, Find(arguments.directory));
  SILTFS_RETURN_IF_ERROR(SyncBefore(place));
  SILTFS_RETURN_IF_ERROR(command.Check());
  SILTFS_ASSIGN_OR_RETURN(Json wanted, LimitsOf(arguments, place.inode));
  command.Observe(LookAtCount(place));
  return Ask(place, std::move(wanted), command.WhileItRuns("its daemon ends the count soon"));
}

ExitCode Set(const QuotaArguments& arguments, Surroundings& surroundings) {
  // A wrong limit must not depend on the directory.
  const auto valid = LimitsOf(arguments, 0);
  if (!valid.ok()) return Fail(surroundings, valid.status());
  if (!arguments.bytes && !arguments.files) {
    return Fail(surroundings, Status(StatusCode::kInvalidArgument,
                                     "a quota needs --bytes SIZE, --files NUMBER, or both"));
  }
  const auto command = LongCommand::Begin(
      surroundings,
      {.command = "quota set", .subject = arguments.directory, .quiet = arguments.quiet});
  if (!command.ok()) return Fail(surroundings, command.status());
  Place place;
  const Result<Json> quota = SetLimits(arguments, place, **command);
  (*command)->End();
  if (!quota.ok()) {
    return FailAt(surroundings,
                  ExplainInterruption(quota.status(), "the directory's quota has not changed"),
                  arguments.directory);
  }
  return Print(surroundings, arguments, place, *quota);
}

ExitCode Remove(const QuotaArguments& arguments, Surroundings& surroundings) {
  const auto place = Find(arguments.directory);
  if (!place.ok()) return Fail(surroundings, place.status());
  const auto quota = Ask(*place, {{"action", "remove"}, {"directory", place->inode}});
  if (!quota.ok()) return FailAt(surroundings, quota.status(), arguments.directory);
  return Print(surroundings, arguments, *place, *quota);
}

// The quotas that the paths name: all quotas of a mountpoint, or the one that a directory counts
// against. Adds lines to `text`.
Result<Json> Collect(const std::vector<std::string>& paths, std::string& text) {
  Json quotas = Json::array();
  for (const std::string& path : paths) {
    SILTFS_ASSIGN_OR_RETURN(const Place place, Find(path));
    const Json arguments = place.is_mountpoint ? Json{{"action", "list"}}
                                               : Json{{"action", "show"}, {"inode", place.inode}};
    auto answer = Ask(place, arguments);
    if (!answer.ok()) {
      Status failure = answer.status();
      return failure.path().empty() ? std::move(failure).At(path) : failure;
    }
    const Json found = place.is_mountpoint ? answer->at("quotas") : Json::array({*answer});
    for (const Json& quota : found) {
      quotas.push_back(quota);
      quotas.back()["mountpoint"] = place.address.mountpoint;
      text += Line(quota, place.address.mountpoint);
    }
  }
  return Json{{"quotas", std::move(quotas)}};
}

ExitCode Show(const QuotaArguments& arguments, Surroundings& surroundings) {
  std::string text;
  const auto quotas = Collect(arguments.places, text);
  if (!quotas.ok()) return Fail(surroundings, quotas.status());
  if (arguments.json) {
    PrintJson(surroundings, *quotas);
  } else {
    surroundings.out << text << std::flush;
  }
  return ExitCode::kDone;
}

std::shared_ptr<QuotaArguments> AddDirectory(CLI::App& app) {
  auto arguments = std::make_shared<QuotaArguments>();
  app.add_option("DIR", arguments->directory, "A directory in a mounted store")->required();
  app.add_flag("--json", arguments->json, "Print one JSON document");
  return arguments;
}

std::function<ExitCode()> ConfigureSet(CLI::App& app, Surroundings& surroundings) {
  const auto arguments = AddDirectory(app);
  app.add_option("--bytes", arguments->bytes, "Most logical bytes of the files below; 0: no limit")
      ->option_text("SIZE");
  app.add_option("--files", arguments->files, "Most files and directories below; 0: no limit")
      ->option_text("NUMBER");
  app.add_flag("--quiet", arguments->quiet, "Show no progress");
  return [arguments, &surroundings] { return Set(*arguments, surroundings); };
}

std::function<ExitCode()> ConfigureShow(CLI::App& app, Surroundings& surroundings) {
  auto arguments = std::make_shared<QuotaArguments>();
  app.add_option("DIR|MOUNTPOINT", arguments->places,
                 "Directories below a quota, or mounts, of which all quotas are shown")
      ->required();
  app.add_flag("--json", arguments->json, "Print one JSON document");
  return [arguments, &surroundings] { return Show(*arguments, surroundings); };
}

std::function<ExitCode()> ConfigureRemove(CLI::App& app, Surroundings& surroundings) {
  const auto arguments = AddDirectory(app);
  return [arguments, &surroundings] { return Remove(*arguments, surroundings); };
}

}  // namespace

std::function<ExitCode()> ConfigureQuota(CLI::App& app, Surroundings& surroundings) {
  app.require_subcommand(1);
  std::vector<std::pair<CLI::App*, std::function<ExitCode()>>> runs;
  const auto add = [&](const char* name, const char* description, ConfigureCommand configure) {
    CLI::App* const made = app.add_subcommand(name, description);
    made->set_help_flag("-h,--help", "Print this help and exit");
    runs.emplace_back(made, configure(*made, surroundings));
  };
  add("set", "Limit what a directory may hold", ConfigureSet);
  add("show", "Show limits and usage", ConfigureShow);
  add("remove", "Remove the limits of a directory", ConfigureRemove);
  return [runs] {
    for (const auto& [subcommand, run] : runs) {
      if (subcommand->parsed()) return run();
    }
    return ExitCode::kUsage;
  };
}

}  // namespace siltfs
