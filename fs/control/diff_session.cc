#include "fs/control/diff_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <utility>

#include "fs/control/protocol.h"
#include "store/base/hex_text.h"

namespace siltfs {
namespace {

using Json = nlohmann::json;

// A line is sent when its changes have about this many bytes.
constexpr size_t kLineBytes = 64u << 10;
// A client that takes no line for this long is given up. It would keep the snapshots from being
// removed.
constexpr std::chrono::seconds kPatience{60};
// So often a line is sent at least, which fails if the client has left.
constexpr std::chrono::seconds kAliveInterval{1};

constexpr std::array<std::pair<ChangeKind, std::string_view>, 4> kNames = {
    {{ChangeKind::kCreated, "created"},
     {ChangeKind::kChanged, "changed"},
     {ChangeKind::kRenamed, "renamed"},
     {ChangeKind::kDeleted, "deleted"}}};

Status Malformed() {
  return {StatusCode::kInvalidArgument, "a message of a comparison of snapshots is malformed"};
}

std::optional<std::string> TextIn(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_string()) return std::nullopt;
  return found->get<std::string>();
}

std::optional<PathChange> DecodeChange(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  const auto kind = TextIn(object, "change");
  const auto path = FromHex(TextIn(object, "path").value_or("-"));
  const auto old_path = FromHex(TextIn(object, "old_path").value_or("-"));
  const auto type = object.find("type");
  const auto content = object.find("content");
  const auto metadata = object.find("metadata");
  const auto named = std::ranges::find(kNames, kind.value_or(""),
                                       &std::pair<ChangeKind, std::string_view>::second);
  if (named == kNames.end() || !path || !old_path) return std::nullopt;
  if (type == object.end() || !type->is_number_unsigned()) return std::nullopt;
  if (content == object.end() || !content->is_boolean()) return std::nullopt;
  if (metadata == object.end() || !metadata->is_boolean()) return std::nullopt;
  return PathChange{.kind = named->first,
                    .path = *path,
                    .old_path = *old_path,
                    .type = type->get<uint32_t>(),
                    .content = content->get<bool>(),
                    .metadata = metadata->get<bool>()};
}

// Sends changes in lines.
class DiffSender {
 public:
  explicit DiffSender(LocalStream& stream) : stream_(stream) {}

  uint64_t sent() const { return sent_; }

  Status Add(const PathChange& change) {
    bytes_ += change.path.size() + change.old_path.size() + 64;
    changes_.push_back(change);
    return bytes_ < kLineBytes ? Status::Ok() : Send();
  }
  Status KeepAlive() { return Clock::now() < last_ + kAliveInterval ? Status::Ok() : Send(); }
  Status Send() {
    last_ = Clock::now();
    sent_ += changes_.size();
    const std::string line = EncodePathChanges(std::exchange(changes_, {}));
    bytes_ = 0;
    return stream_.WriteAll(line + "\n");
  }

 private:
  using Clock = std::chrono::steady_clock;

  LocalStream& stream_;
  std::vector<PathChange> changes_;
  size_t bytes_ = 0;
  uint64_t sent_ = 0;
  Clock::time_point last_ = Clock::now();
};

}  // namespace

std::string_view NameOf(ChangeKind kind) {
  return std::ranges::find(kNames, kind, &std::pair<ChangeKind, std::string_view>::first)->second;
}

std::string EncodeWantedDiff(const WantedDiff& wanted) {
  Json object = {{"from", wanted.from}};
  if (wanted.to) object["to"] = *wanted.to;
  return object.dump();
}

Result<WantedDiff> DecodeWantedDiff(std::string_view line) {
  const Json object = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return Malformed();
  const auto from = TextIn(object, "from");
  const auto to = TextIn(object, "to");
  if (!from || (!to && object.contains("to"))) return Malformed();
  return WantedDiff{.from = *from, .to = to};
}

std::string EncodePathChanges(const std::vector<PathChange>& changes) {
  Json list = Json::array();
  for (const PathChange& change : changes) {
    list.push_back({{"change", NameOf(change.kind)},
                    {"path", ToHex(change.path)},
                    {"old_path", ToHex(change.old_path)},
                    {"type", change.type},
                    {"content", change.content},
                    {"metadata", change.metadata}});
  }
  return list.dump();
}

Result<std::optional<std::vector<PathChange>>> DecodePathChanges(std::string_view line) {
  if (!line.starts_with('[')) return std::optional<std::vector<PathChange>>();
  const Json list = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!list.is_array()) return Malformed();
  std::vector<PathChange> changes;
  for (const Json& object : list) {
    auto change = DecodeChange(object);
    if (!change) return Malformed();
    changes.push_back(*std::move(change));
  }
  return std::optional(std::move(changes));
}

Result<Json> ServeDiff(FileSystem& file_system, LocalStream& stream,
                       const std::function<bool()>& stopped) {
  SILTFS_RETURN_IF_ERROR(stream.SetTimeout(kPatience));
  SILTFS_ASSIGN_OR_RETURN(const auto line, stream.ReadLine(kMaxDiffRequestBytes));
  if (!line) return Status(StatusCode::kInterrupted, "was interrupted");
  SILTFS_ASSIGN_OR_RETURN(const WantedDiff wanted, DecodeWantedDiff(*line));
  DiffSender sender(stream);
  Status compared = file_system.snapshots().Diff(
      wanted.from, wanted.to,
      [&]() -> Status {
        if (stopped()) return {StatusCode::kAborted, "the store is being closed"};
        return sender.KeepAlive();
      },
      [&](const PathChange& change) { return sender.Add(change); });
  // A missing snapshot is no missing store, which has an exit code of its own.
  if (compared.Is(StatusCode::kNotFound))
    return Status(StatusCode::kAborted, std::string(compared.cause()));
  SILTFS_RETURN_IF_ERROR(compared);
  SILTFS_RETURN_IF_ERROR(sender.Send());
  return Json{{"changes", sender.sent()}};
}

Result<Json> ReceiveDiff(LocalStream& stream, const WantedDiff& wanted,
                         const std::function<Status(const PathChange&)>& visit) {
  SILTFS_RETURN_IF_ERROR(stream.WriteAll(EncodeWantedDiff(wanted) + "\n"));
  while (true) {
    const auto line = stream.ReadLine(control::kMaxResponseBytes);
    if (line.status().Is(StatusCode::kInterrupted)) continue;  // the daemon is only silent
    SILTFS_RETURN_IF_ERROR(line.status());
    if (!*line) return Status(StatusCode::kAborted, "the daemon of the mount has ended");
    SILTFS_ASSIGN_OR_RETURN(const auto changes, DecodePathChanges(**line));
    if (!changes) return control::DecodeResponse(**line);
    for (const PathChange& change : *changes) SILTFS_RETURN_IF_ERROR(visit(change));
  }
}

}  // namespace siltfs
