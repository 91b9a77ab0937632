#include "fs/rocksdb/metadata_salvage.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <memory>
#include <utility>

#include "fs/rocksdb/log_salvage.h"
#include "fs/rocksdb/manifest_salvage.h"
#include "fs/rocksdb/sync_ledger.h"
#include "fs/rocksdb/table_salvage.h"
#include "store/env/files.h"

namespace siltfs {
namespace {

constexpr std::string_view kManifest = "MANIFEST-";

std::optional<uint64_t> NumberIn(std::string_view digits) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool whole = error == std::errc() && end == digits.data() + digits.size();
  return whole ? std::optional(number) : std::nullopt;
}

// The number in a file name; nullopt if the name is not digits and the extension.
std::optional<uint64_t> NumberOf(std::string_view name, std::string_view extension) {
  if (!name.ends_with(extension)) return std::nullopt;
  return NumberIn(name.substr(0, name.size() - extension.size()));
}

struct Files {
  std::map<uint64_t, std::string> tables;  // paths, by the number in the file name
  std::map<uint64_t, std::string> logs;
};

// A table that is not open yet, and its first change.
struct WaitingTable {
  StoredChange first;
  uint64_t number = 0;
  std::string path;
};

class Salvage {
 public:
  Salvage(Env& env, const std::string& directory, const std::string& ledger_path,
          const std::function<Status(std::string_view key, std::string_view value)>& visit)
      : env_(env), directory_(directory), ledger_path_(ledger_path), visit_(visit) {}

  Result<MetadataSalvage> Run() {
    SILTFS_RETURN_IF_ERROR(ListFiles());
    ReadLedger();
    const auto live = FindLiveFiles();
    result_.manifest_known = live.has_value();
    if (live) Restrict(*live);
    for (const auto& [number, path] : files_.logs) ReadLog(path);
    logged_ = changes_.begin();
    for (const auto& [number, path] : files_.tables) LookAt(number, path);
    std::sort(waiting_.begin(), waiting_.end(), [](const WaitingTable& a, const WaitingTable& b) {
      return IsBefore(b.first, a.first);  // the first table to open comes last
    });
    SILTFS_RETURN_IF_ERROR(Merge());
    std::sort(result_.losses.begin(), result_.losses.end(),
              [](const SalvageLoss& a, const SalvageLoss& b) { return a.path < b.path; });
    return std::move(result_);
  }

 private:
  struct OpenTable {
    uint64_t number = 0;
    std::string path;
    std::unique_ptr<TableSalvage> reader;
  };
  static bool StandsBehind(const OpenTable& a, const OpenTable& b) {
    const StoredChange& first = a.reader->change();
    const StoredChange& second = b.reader->change();
    if (IsBefore(first, second) != IsBefore(second, first)) return IsBefore(second, first);
    return a.number < b.number;  // two tables have the same change
  }
  void Push(OpenTable table) {
    open_.push_back(std::move(table));
    std::push_heap(open_.begin(), open_.end(), StandsBehind);
  }

  Status ListFiles() {
    const auto entries = env_.ListDirectory(directory_);
    if (!entries.ok()) {
      const bool none = entries.status().Is(StatusCode::kNotFound) ||
                        entries.status().Is(StatusCode::kNotADirectory);
      return none ? Status::Ok() : entries.status();
    }
    for (const DirectoryEntry& entry : *entries) {
      const std::string path = JoinPath(directory_, entry.name);
      if (const auto table = NumberOf(entry.name, ".sst")) files_.tables[*table] = path;
      if (const auto log = NumberOf(entry.name, ".log")) files_.logs[*log] = path;
    }
    return Status::Ok();
  }

  void ReadLedger() {
    auto ledger = ReadSyncLedger(env_, ledger_path_);
    if (!ledger.ok()) {
      ledger.status().IgnoreError("a ledger that cannot be read is ignored");
      return;
    }
    for (SyncLedgerEntry& entry : ledger->entries) {
      std::string name = entry.name;
      synced_[std::move(name)] = std::move(entry);
    }
  }

  // Returns the live files according to the newest MANIFEST that is known to be whole.
  std::optional<LiveFiles> FindLiveFiles() {
    uint64_t highest = 0;
    const SyncLedgerEntry* newest = nullptr;
    for (const auto& [name, entry] : synced_) {
      if (!SyncLedger::IsManifest(name) || !IsWhole(entry)) continue;
      const auto number = NumberIn(std::string_view(name).substr(kManifest.size()));
      if (!number || *number < highest) continue;
      highest = *number;
      newest = &entry;
    }
    return newest == nullptr ? std::nullopt : ReadManifest(*newest);
  }

  bool IsWhole(const SyncLedgerEntry& entry) {
    const Status checked = CheckSynced(env_, directory_, entry);
    const bool there = env_.GetFileInfo(JoinPath(directory_, entry.name)).ok();
    const bool whole = checked.ok() && there;
    checked.IgnoreError("a file that is not whole is not used");
    return whole;
  }

  std::optional<LiveFiles> ReadManifest(const SyncLedgerEntry& entry) {
    const auto file = env_.OpenFile(JoinPath(directory_, entry.name), {.mode = OpenMode::kRead});
    if (!file.ok()) return std::nullopt;
    LiveFiles files;
    const auto read = SalvageLog(**file, entry.length, entry.length,
                                 [&files](ByteView edit) { return ApplyEdit(edit, files); });
    const bool known = read.ok() && read->lost_bytes == 0 && read->records > 0;
    return known ? std::optional(std::move(files)) : std::nullopt;
  }

  void Restrict(const LiveFiles& live) {
    std::erase_if(files_.tables,
                  [&live](const auto& table) { return !live.tables.contains(table.first); });
    std::erase_if(files_.logs, [&live](const auto& log) { return log.first < live.first_log; });
    for (const uint64_t number : live.tables) {
      const std::string path = JoinPath(directory_, fmt::format("{:06}.sst", number));
      if (!files_.tables.contains(number))
        result_.losses.push_back({.path = path, .missing = true});
    }
  }

  void ReadLog(const std::string& path) {
    const auto file = env_.OpenFile(path, {.mode = OpenMode::kRead});
    if (!file.ok()) {
      file.status().IgnoreError("counts as missing");
      result_.losses.push_back({.path = path, .missing = true});
      return;
    }
    const auto known = synced_.find(path.substr(path.rfind('/') + 1));
    const uint64_t synced = known == synced_.end() ? 0 : known->second.length;
    uint64_t read = 0;
    const auto keep = [this, &read](StoredChange change) {
      ++read;
      auto [place, added] = changes_.try_emplace(change.key);
      if (added || place->second.number <= change.number) place->second = std::move(change);
    };
    const auto salvaged = SalvageLog(**file, UINT64_MAX, synced, [&keep](ByteView record) {
      return ReadLoggedChanges(record, keep);
    });
    const uint64_t lost = salvaged.ok() ? salvaged->lost_bytes : 0;
    if (!salvaged.ok() || lost > 0) {
      result_.losses.push_back(
          {.path = path, .missing = !salvaged.ok(), .bytes = lost, .read = read});
    }
    salvaged.status().IgnoreError("counts as missing");
  }

  void LookAt(uint64_t number, const std::string& path) {
    const auto table = TableSalvage::Open(env_, path);
    if (!table.ok()) {
      table.status().IgnoreError("counts as missing");
      result_.losses.push_back({.path = path, .missing = true});
      return;
    }
    ++result_.tables;
    if ((*table)->Valid()) {
      waiting_.push_back({(*table)->change(), number, path});
    } else {
      Close(path, **table);
    }
  }

  // Records the losses of a table that was read to its end.
  void Close(const std::string& path, const TableSalvage& table) {
    const auto expected = table.changes_expected();
    const bool whole =
        expected ? table.changes_read() >= *expected : table.lost_bytes() <= kFooterBytes;
    if (whole) return;
    result_.losses.push_back({.path = path,
                              .missing = false,
                              .bytes = table.lost_bytes(),
                              .read = table.changes_read(),
                              .expected = expected});
  }

  // Opens those waiting tables whose first change does not come after the next change in the open
  // tables.
  Status OpenWaiting() {
    while (!waiting_.empty() &&
           (open_.empty() || !IsBefore(open_.front().reader->change(), waiting_.back().first))) {
      WaitingTable table = std::move(waiting_.back());
      waiting_.pop_back();
      SILTFS_ASSIGN_OR_RETURN(auto reader, TableSalvage::Open(env_, table.path));
      if (reader->Valid()) {
        Push({table.number, std::move(table.path), std::move(reader)});
      } else {
        Close(table.path, *reader);
      }
    }
    return Status::Ok();
  }

  Status Merge() {
    std::optional<std::string> last;
    while (true) {
      SILTFS_RETURN_IF_ERROR(OpenWaiting());
      const bool from_table = !open_.empty();
      const bool from_log =
          logged_ != changes_.end() &&
          (!from_table || IsBefore(logged_->second, open_.front().reader->change()));
      if (!from_table && !from_log) return Status::Ok();
      const StoredChange change = from_log ? std::move((logged_++)->second) : TakeFromTable();
      if (last == change.key) continue;  // an older change of the key
      last = change.key;
      if (!change.value) continue;
      ++result_.entries;
      SILTFS_RETURN_IF_ERROR(visit_(change.key, *change.value));
    }
  }

  StoredChange TakeFromTable() {
    std::pop_heap(open_.begin(), open_.end(), StandsBehind);
    OpenTable table = std::move(open_.back());
    open_.pop_back();
    StoredChange change = table.reader->change();
    table.reader->Next();
    if (table.reader->Valid()) {
      Push(std::move(table));
    } else {
      Close(table.path, *table.reader);
    }
    return change;
  }

  static constexpr uint64_t kFooterBytes = 53;  // not a block, so TableSalvage counts it as lost

  Env& env_;
  const std::string& directory_;
  const std::string& ledger_path_;
  const std::function<Status(std::string_view key, std::string_view value)>& visit_;
  Files files_;
  std::map<std::string, SyncLedgerEntry> synced_;  // by file name
  std::map<std::string, StoredChange> changes_;    // in the logs, the newest of each key
  std::map<std::string, StoredChange>::iterator logged_;
  std::vector<WaitingTable> waiting_;
  std::vector<OpenTable> open_;  // a heap with the first table at the front
  MetadataSalvage result_;
};

}  // namespace

Result<bool> HasMetadataFiles(Env& env, const std::string& directory) {
  const auto entries = env.ListDirectory(directory);
  if (entries.status().Is(StatusCode::kNotFound) || entries.status().Is(StatusCode::kNotADirectory))
    return false;
  if (!entries.ok()) return entries.status();
  for (const DirectoryEntry& entry : *entries) {
    const bool is_ours = NumberOf(entry.name, ".sst") || NumberOf(entry.name, ".log") ||
                         entry.name.starts_with(kManifest) || entry.name == "CURRENT";
    if (!is_ours || entry.type != FileType::kRegular) continue;
    SILTFS_ASSIGN_OR_RETURN(const FileInfo info, env.GetFileInfo(JoinPath(directory, entry.name)));
    if (info.size > 0) return true;
  }
  return false;
}

Result<MetadataSalvage> SalvageMetadata(
    Env& env, const std::string& directory, const std::string& ledger_path,
    const std::function<Status(std::string_view key, std::string_view value)>& visit) {
  return Salvage(env, directory, ledger_path, visit).Run();
}

}  // namespace siltfs
