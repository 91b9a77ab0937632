#include "tools/siltfs/store_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "store/env/files.h"
#include "store/env/mountpoint.h"
#include "store/env/posix_env.h"
#include "store/env/process.h"
#include "store/superblock/superblock.h"

namespace siltfs {
namespace {

constexpr size_t kMostFileBytes = 1 << 20;

struct Candidate {
  std::string path;
  std::string uuid;
};

struct Prefix {
  std::string_view text;
  StoreTag::Kind kind;
};
constexpr Prefix kPrefixes[] = {{"UUID=", StoreTag::Kind::kUuid},
                                {"LABEL=", StoreTag::Kind::kLabel},
                                {"siltfs-uuid:", StoreTag::Kind::kUuid},
                                {"siltfs-label:", StoreTag::Kind::kLabel}};

std::string Joined(const std::vector<std::string>& texts) {
  std::string joined;
  for (const std::string& text : texts) joined += (joined.empty() ? "" : ", ") + text;
  return joined;
}

class Search {
 public:
  Search(Env& env, const StoreTag& tag, std::optional<StoreUuid> uuid)
      : env_(env), tag_(tag), uuid_(uuid) {}

  void Examine(const std::string& place) {
    const auto path = AbsolutePath(place);
    if (!path.ok()) return path.status().IgnoreError("the place does not exist");
    if (ExamineStore(*path)) return;
    const auto entries = env_.ListDirectory(*path);
    if (!entries.ok()) return entries.status().IgnoreError("the place is no directory");
    for (const DirectoryEntry& entry : *entries) {
      // A symbolic link may lead to a store, too.
      if (entry.type != FileType::kDirectory && entry.type != FileType::kLink) continue;
      const auto child = AbsolutePath(JoinPath(*path, entry.name));
      if (child.ok()) {
        ExamineStore(*child);
      } else {
        child.status().IgnoreError("the link leads nowhere");
      }
    }
  }

  Result<std::string> Finish(const std::vector<std::string>& places) const {
    if (found_.size() == 1) return found_.front().path;
    if (found_.size() > 1) return Ambiguous();
    std::string cause =
        fmt::format("there is no store with {} in {}", tag_.ToText(), Joined(places));
    if (!foreign_.empty()) {
      cause += fmt::format("; {} has it, but belongs to another user: name its directory instead",
                           Joined(foreign_));
    } else if (!unreadable_.empty()) {
      cause += fmt::format("; what {} has is not known ({})", unreadable_.front().first,
                           unreadable_.front().second);
    } else {
      cause +=
          fmt::format("; list the store's directory in {}, or name the directory", kStoresFile);
    }
    return Status(StatusCode::kNotFound, std::move(cause));
  }

 private:
  // False if there is no store in this directory.
  bool ExamineStore(const std::string& path) {
    if (std::ranges::find(seen_, path) != seen_.end()) return true;
    const auto state = ReadSuperblock(env_, path, StoreAccess::kReadOnly);
    if (!state.ok()) {
      const Status& why = state.status();
      const bool is_store = why.Is(StatusCode::kNeedsNewer) || why.Is(StatusCode::kCorruption);
      if (is_store) unreadable_.emplace_back(path, std::string(why.cause()));
      why.IgnoreError("the search goes on");
      return is_store;
    }
    seen_.push_back(path);
    const Superblock& superblock = state->superblock;
    const bool matches = uuid_ ? superblock.shown_uuid() == *uuid_
                               : !tag_.value.empty() && superblock.label == tag_.value;
    if (!matches) return true;
    const auto owner = OwnerOf(path);
    const bool own = owner.ok() && (owner->uid == 0 || owner->uid == CurrentUserId());
    if (!owner.ok()) owner.status().IgnoreError("the store counts as foreign");
    if (own) {
      found_.push_back({path, superblock.shown_uuid().ToText()});
    } else {
      foreign_.push_back(path);
    }
    return true;
  }

  Status Ambiguous() const {
    std::vector<std::string> names;
    bool same = false;
    for (const Candidate& candidate : found_) {
      names.push_back(fmt::format("{} (UUID {})", candidate.path, candidate.uuid));
      same |= candidate.uuid == found_.front().uuid && &candidate != &found_.front();
    }
    return Status(StatusCode::kUnsupported,
                  fmt::format("{} names several stores: {}; {}", tag_.ToText(), Joined(names),
                              same ? "give a copy another UUID with \"siltfs tune --uuid random\", "
                                     "or name the directory"
                                   : "use the UUID, or name the directory"));
  }

  Env& env_;
  const StoreTag& tag_;
  const std::optional<StoreUuid> uuid_;  // the tag's value, if it is a UUID
  std::vector<std::string> seen_;
  std::vector<Candidate> found_;
  std::vector<std::string> foreign_;                             // stores of other users that match
  std::vector<std::pair<std::string, std::string>> unreadable_;  // paths and causes
};

}  // namespace

std::vector<std::string> DefaultStorePlaces() { return {"/srv", "/var/lib/siltfs"}; }

std::string StoreTag::ToText() const { return (kind == Kind::kUuid ? "UUID=" : "LABEL=") + value; }

std::optional<StoreTag> ParseStoreTag(std::string_view source) {
  for (const Prefix& prefix : kPrefixes) {
    if (source.starts_with(prefix.text))
      return StoreTag{prefix.kind, std::string(source.substr(prefix.text.size()))};
  }
  return std::nullopt;
}

Result<std::vector<std::string>> ReadStorePlaces(Env& env, const std::string& file) {
  const auto text = ReadWholeFile(env, file, kMostFileBytes);
  if (text.status().Is(StatusCode::kNotFound) || text.status().Is(StatusCode::kNotADirectory))
    return DefaultStorePlaces();
  if (!text.ok()) return text.status();
  std::vector<std::string> places;
  std::string_view rest = *text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    while (!line.empty() && (line.back() == ' ' || line.back() == '\t' || line.back() == '\r'))
      line.remove_suffix(1);
    while (!line.empty() && (line.front() == ' ' || line.front() == '\t')) line.remove_prefix(1);
    if (line.empty() || line.front() == '#') continue;
    if (line.front() != '/') {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("line {}: \"{}\" is no absolute path", number, line))
          .At(file);
    }
    places.emplace_back(line);
  }
  return places;
}

Result<std::string> FindTaggedStore(Env& env, const StoreTag& tag,
                                    const std::vector<std::string>& places) {
  std::optional<StoreUuid> uuid;
  if (tag.kind == StoreTag::Kind::kUuid) {
    uuid = StoreUuid::FromText(tag.value);
    if (!uuid) {
      return Status(StatusCode::kInvalidArgument,
                    fmt::format("{}: the UUID does not have the form "
                                "01234567-89ab-cdef-0123-456789abcdef",
                                tag.ToText()));
    }
  }
  Search search(env, tag, uuid);
  for (const std::string& place : places) search.Examine(place);
  return search.Finish(places);
}

}  // namespace siltfs
