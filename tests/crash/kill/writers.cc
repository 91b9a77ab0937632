#include "tests/crash/kill/writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace siltfs::killtest {
namespace {

class Writer {
 public:
  Writer(Recorder& recorder, Random random, ByteView pool)
      : recorder_(recorder), random_(random), pool_(pool) {}
  virtual ~Writer() = default;

  void Run() {
    while (!recorder_.stopped()) Step();
    Finish();
  }

 protected:
  virtual void Step() = 0;
  virtual void Finish() {}

  Bytes Make(size_t size) { return MakeBytes(random_, pool_, size); }
  // Returns a random size from 1 to `most`. Its order of magnitude is random, too.
  size_t SomeSize(size_t most) {
    const size_t limit = size_t{1} << (1 + random_.Below(32));
    return 1 + random_.Below(std::min(limit, most));
  }
  std::vector<std::string> Files(const std::string& prefix = "") const {
    return Names(NodeType::kFile, prefix);
  }
  std::vector<std::string> Names(NodeType type, const std::string& prefix = "") const {
    std::vector<std::string> names;
    for (const auto& [name, node] : recorder_.tree().names()) {
      if (node->type == type && name.starts_with(prefix)) names.push_back(name);
    }
    return names;
  }
  size_t BytesInAll() const {
    size_t bytes = 0;
    for (const auto& entry : recorder_.tree().names()) bytes += entry.second->content.size();
    return bytes;
  }
  const std::string& OneOf(const std::vector<std::string>& names) {
    return names[random_.Below(names.size())];
  }
  std::string FreshName(const std::string& prefix) {
    for (;;) {
      std::string name = fmt::format("{}{}", prefix, random_.Below(1'000'000));
      if (!recorder_.tree().Find(name)) return name;
    }
  }
  void WriteInPieces(const Descriptor& file, const std::string& name, ByteView bytes) {
    while (!bytes.empty()) {
      const size_t piece = random_.OneIn(3) ? SomeSize(bytes.size()) : bytes.size();
      recorder_.Append(file, name, bytes.first(piece));
      bytes = bytes.subspan(piece);
    }
  }

  Recorder& recorder_;
  Random random_;
  const ByteView pool_;
};

// Appends to logs that stay open. Some appends are synced at once, others by a later sync.
class LogWriter final : public Writer {
 public:
  using Writer::Writer;

 private:
  static constexpr size_t kLongest = 1u << 20;

  void Step() override {
    const std::string name = fmt::format("log{}", random_.Below(3));
    auto log = logs_.find(name);
    if (log == logs_.end()) {
      const bool exists = recorder_.tree().Find(name) != nullptr;
      log = logs_.emplace(name, exists ? recorder_.Open(name) : recorder_.Create(name)).first;
    }
    const size_t record = random_.OneIn(16) ? SomeSize(300u << 10) : SomeSize(16u << 10);
    recorder_.Append(log->second, name, Make(record));
    if (!random_.OneIn(3)) recorder_.SyncFile(log->second, name);
    const std::shared_ptr<Node> node = recorder_.tree().Find(name);
    if ((node->dirty ? *node->dirty : node->content).size() <= kLongest) return;
    Descriptor file = std::move(log->second);
    logs_.erase(log);
    recorder_.Close(std::move(file), name);
    recorder_.Unlink(name);
    recorder_.SyncDirectory("");
  }
  void Finish() override {
    for (auto& [name, file] : logs_) recorder_.Close(std::move(file), name);
    logs_.clear();
  }

  std::map<std::string, Descriptor> logs_;
};

// Writes and changes whole files. Syncs each file before the next one.
class FileWriter final : public Writer {
 public:
  using Writer::Writer;

 private:
  static constexpr size_t kLargest = 4u << 20;
  static constexpr size_t kMostBytes = 8u << 20;
  static constexpr size_t kMostFiles = 24;

  void Step() override {
    const std::vector<std::string> files = Files();
    if (files.size() > kMostFiles || BytesInAll() > kMostBytes) return Remove(OneOf(files));
    const uint64_t choice = files.empty() ? 0 : random_.Below(10);
    if (choice < 4) return MakeFile();
    const std::string& name = OneOf(files);
    if (choice < 7) return Overwrite(name);
    if (choice == 7) return Truncate(name);
    if (choice == 8) return Remove(name);
    Rename(name, random_.OneIn(2) ? FreshName("f") : OneOf(files));
  }

  void MakeFile() {
    const std::string name = FreshName("f");
    Descriptor file = recorder_.Create(name);
    WriteInPieces(file, name, Make(SomeSize(kLargest)));
    recorder_.SyncFile(file, name);
    recorder_.Close(std::move(file), name);
  }
  void Overwrite(const std::string& name) {
    const size_t size = recorder_.tree().Find(name)->content.size();
    Descriptor file = recorder_.Open(name);
    const size_t offset = random_.Below(size + 1);
    recorder_.Overwrite(file, name, offset, Make(SomeSize(64u << 10)));
    recorder_.SyncFile(file, name);
    recorder_.Close(std::move(file), name);
  }
  void Truncate(const std::string& name) {
    const size_t size = recorder_.tree().Find(name)->content.size();
    Descriptor file = recorder_.Open(name);
    recorder_.Truncate(file, name, random_.Below(size + 1));
    recorder_.SyncFile(file, name);
    recorder_.Close(std::move(file), name);
  }
  void Remove(const std::string& name) {
    recorder_.Unlink(name);
    recorder_.SyncDirectory("");
  }
  void Rename(const std::string& name, const std::string& new_name) {
    if (name == new_name) return;
    recorder_.Rename(name, new_name);
    Descriptor file = recorder_.Open(new_name);
    recorder_.SyncFile(file, new_name);
    recorder_.Close(std::move(file), new_name);
  }
};

// Replaces files as editors and package managers do: renames a new file over the old one, without
// an fsync.
class Replacer final : public Writer {
 public:
  using Writer::Writer;

 private:
  void Step() override {
    const std::string name = fmt::format("document{}", random_.Below(4));
    const std::string temporary = name + ".tmp";
    if (recorder_.tree().Find(temporary)) recorder_.Unlink(temporary);  // a crash has left it
    Descriptor file = recorder_.Create(temporary);
    WriteInPieces(file, temporary, Make((4u << 10) + SomeSize(1u << 20)));
    recorder_.Close(std::move(file), temporary);
    recorder_.Rename(temporary, name);
  }
};

// Makes directories with many small files and all other types of objects.
class SmallFilesWriter final : public Writer {
 public:
  using Writer::Writer;

 private:
  static constexpr size_t kMostNames = 200;

  void Step() override {
    const std::string directory = fmt::format("d{}", random_.Below(5));
    if (!recorder_.tree().Find(directory)) return recorder_.MakeDirectory(directory);
    const std::vector<std::string> files = Files();
    const bool full = recorder_.tree().names().size() > kMostNames;
    if (full || random_.OneIn(200)) return RemoveWhole(directory);
    const uint64_t choice = files.empty() ? 0 : random_.Below(12);
    if (choice < 6) return MakeFile(directory + "/");
    const std::string& name = OneOf(files);
    switch (choice) {
      case 6:
        return recorder_.Link(name, FreshName(directory + "/l"));
      case 7:
        return recorder_.MakeSymlink(FreshName(directory + "/s"), name);
      case 8:
        recorder_.SetXattr(name, fmt::format("user.a{}", random_.Below(3)), SomeText());
        return Sync(name);
      case 9:
        return recorder_.Rename(name, FreshName(directory + "/r"));
      case 10:
        return recorder_.SyncDirectory(directory);
      default:
        return recorder_.Unlink(name);
    }
  }

  void MakeFile(const std::string& prefix) {
    const std::string name = FreshName(prefix);
    Descriptor file = recorder_.Create(name);
    if (!random_.OneIn(8)) recorder_.Append(file, name, Make(SomeSize(8u << 10)));
    if (random_.OneIn(4)) recorder_.SetXattr(name, "user.made", SomeText());
    if (random_.OneIn(2)) recorder_.SyncFile(file, name);
    recorder_.Close(std::move(file), name);
  }
  void Sync(const std::string& name) {
    Descriptor file = recorder_.Open(name);
    recorder_.SyncFile(file, name);
    recorder_.Close(std::move(file), name);
  }
  void RemoveWhole(const std::string& directory) {
    for (const NodeType type : {NodeType::kFile, NodeType::kSymlink}) {
      for (const std::string& name : Names(type, directory + "/")) recorder_.Unlink(name);
    }
    recorder_.RemoveDirectory(directory);
  }
  std::string SomeText() {
    return std::string(random_.Below(400), static_cast<char>('a' + random_.Below(26)));
  }
};

std::unique_ptr<Writer> MakeWriter(unsigned writer, Recorder& recorder, const Random& random,
                                   ByteView pool) {
  switch (writer % 4) {
    case 0:
      return std::make_unique<LogWriter>(recorder, random, pool);
    case 1:
      return std::make_unique<FileWriter>(recorder, random, pool);
    case 2:
      return std::make_unique<Replacer>(recorder, random, pool);
    default:
      return std::make_unique<SmallFilesWriter>(recorder, random, pool);
  }
}

}  // namespace

void RunWriter(unsigned writer, Recorder& recorder, Random random, ByteView pool) {
  MakeWriter(writer, recorder, random, pool)->Run();
}

}  // namespace siltfs::killtest
