#include "index/key_value/key_value_store.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <algorithm>
#include <bit>

#include "store/env/files.h"

namespace siltfs {
namespace {

// The segment id that marks an entry with its whole item in the slot.
constexpr SegmentId kInlineSegment = UINT32_MAX;
// Most retries of a lookup whose segment is removed by Reclaim before the lookup reads it.
constexpr int kMostChases = 8;

bool IsInline(const Location& location) { return location.segment == kInlineSegment; }

std::string IndexDirectory(const std::string& store) { return JoinPath(store, "index"); }
std::string ValuesDirectory(const std::string& store) { return JoinPath(store, "values"); }

// Returns the bucket bits for LogStores with slots of this layout. They make a LogStore as large as
// one that has 2^bits buckets and the smallest slots.
unsigned BucketBitsFor(const SlotLayout& layout, unsigned bits) {
  const unsigned doublings = layout.bits() - SlotLayout::kLeastBits;
  return bits > doublings + 1 ? bits - doublings : 1;
}

Result<bool> HasFiles(Env& env, const std::string& directory) {
  auto listing = env.ListDirectory(directory);
  if (listing.status().Is(StatusCode::kNotFound)) return false;
  SILTFS_RETURN_IF_ERROR(listing.status());
  return !listing->empty();
}

// Called if the store has no manifest. The directories of the index and of the values stay empty
// until the manifest is durable. So files in them mean that the manifest was lost.
Status CheckNotLost(Env& env, const KeyValueOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(const bool entries, HasFiles(env, IndexDirectory(options.directory)));
  SILTFS_ASSIGN_OR_RETURN(const bool values, HasFiles(env, ValuesDirectory(options.directory)));
  if (!entries && !values) return Status::Ok();
  return Status(StatusCode::kCorruption,
                "has the index or the values of a key-value store, but its own file is missing")
      .At(options.directory);
}

// Fails if there are values but the index has no files. The index's manifest is written before the
// first value is appended, so in this case the index was lost.
Status CheckIndexNotLost(Env& env, const SiltIndexOptions& index, const ValueLog& values) {
  if (index.accept_lost_entries || values.segments().empty()) return Status::Ok();
  SILTFS_ASSIGN_OR_RETURN(const bool there, HasFiles(env, index.directory));
  if (there) return Status::Ok();
  return Status(StatusCode::kCorruption, "is empty, but the store has values").At(index.directory);
}

Result<KeyValueManifest> MakeStore(Env& env, const KeyValueOptions& options) {
  SILTFS_RETURN_IF_ERROR(KeyValueStore::CheckSlotSize(options.slot_size));
  SILTFS_RETURN_IF_ERROR(CheckNotLost(env, options));
  if (options.read_only) {
    return Status(StatusCode::kNotFound, "is no key-value store").At(options.directory);
  }
  KeyValueManifest manifest;
  manifest.layout = SlotLayout::Named(static_cast<unsigned>(std::countr_zero(options.slot_size)));
  SILTFS_RETURN_IF_ERROR(env.FillRandom(manifest.secret));
  // Write the manifest last, so that a store with a manifest has both directories.
  const std::string& directory = options.directory;
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env, directory, IndexDirectory(directory)));
  SILTFS_RETURN_IF_ERROR(CreateDirectoryDurably(env, directory, ValuesDirectory(directory)));
  SILTFS_RETURN_IF_ERROR(WriteKeyValueManifest(env, options.directory, manifest));
  return manifest;
}

Status TooLong(const char* what, size_t size, size_t most) {
  return {StatusCode::kInvalidArgument,
          fmt::format("a {} has {} bytes; at most {} are possible", what, size, most)};
}

}  // namespace

// --- Opening ---

KeyValueStore::KeyValueStore(const KeyValueOptions& options, const KeyValueManifest& manifest,
                             std::unique_ptr<ValueLog> values)
    : options_(options),
      layout_(manifest.layout),
      secret_(manifest.secret),
      values_(std::move(values)) {}

KeyValueStore::~KeyValueStore() = default;

Status KeyValueStore::CheckSlotSize(size_t bytes) {
  const auto bits = static_cast<unsigned>(std::countr_zero(bytes));
  if (!std::has_single_bit(bytes) || bits < SlotLayout::kLeastBits ||
      bits > SlotLayout::kMostBits) {
    return {StatusCode::kInvalidArgument,
            fmt::format("the slot size is {} bytes; it must be a power of two from {} to {}", bytes,
                        size_t{1} << SlotLayout::kLeastBits, size_t{1} << SlotLayout::kMostBits)};
  }
  return Status::Ok();
}

Result<std::unique_ptr<KeyValueStore>> KeyValueStore::Open(Env& env,
                                                           const KeyValueOptions& options) {
  SILTFS_ASSIGN_OR_RETURN(auto found, ReadKeyValueManifest(env, options.directory));
  if (!found) {
    SILTFS_ASSIGN_OR_RETURN(found, MakeStore(env, options));
  } else if (!options.read_only) {
    // The process that made the store may have been killed before the file's name was durable.
    SILTFS_RETURN_IF_ERROR(env.SyncDirectory(options.directory));
  }
  const KeyValueManifest manifest = *found;
  ValueLogOptions values = options.values;
  values.directory = ValuesDirectory(options.directory);
  values.read_only = options.read_only;
  SILTFS_ASSIGN_OR_RETURN(auto log, ValueLog::Open(env, values));
  SiltIndexOptions index = options.index;
  index.directory = IndexDirectory(options.directory);
  index.read_only = options.read_only;
  index.layout = manifest.layout;
  index.bucket_bits = BucketBitsFor(manifest.layout, options.index.bucket_bits);
  // The replay in SiltEngine::Open calls Holds, so it must end before ForgetRecovered below.
  index.serve_early = false;
  SILTFS_RETURN_IF_ERROR(CheckIndexNotLost(env, index, *log));
  std::unique_ptr<KeyValueStore> store(new KeyValueStore(options, manifest, std::move(log)));
  SILTFS_ASSIGN_OR_RETURN(store->engine_, SiltEngine::Open(env, index, store.get()));
  store->values_->ForgetRecovered();
  {
    MutexLock lock(store->write_mutex_);
    store->flushes_ = store->engine_->durable_sequence();
  }
  return store;
}

Status KeyValueStore::MakeDurable() { return values_->Sync(); }

bool KeyValueStore::Holds(const SlotEntry& entry) {
  return IsInline(entry.location) || values_->Holds(entry.name, entry.location);
}

Status KeyValueStore::CheckOpen() const {
  return closed_ ? Status(StatusCode::kInvalidArgument, "the key-value store is closed")
                 : Status::Ok();
}

Status KeyValueStore::CheckWritable() const {
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  return options_.read_only ? Status(StatusCode::kReadOnly, "the key-value store is read-only")
                            : Status::Ok();
}

// An attacker can choose keys, but does not know the secret. So the attacker cannot compute names,
// and cannot find two keys with the same name.
Result<ChunkName> KeyValueStore::NameOf(ByteView key) const {
  Bytes input(secret_.begin(), secret_.end());
  input.insert(input.end(), key.begin(), key.end());
  std::array<uint8_t, EVP_MAX_MD_SIZE> digest{};
  if (EVP_Digest(input.data(), input.size(), digest.data(), nullptr, EVP_sha256(), nullptr) != 1) {
    return Status(StatusCode::kIoError, "OpenSSL can't hash a key");
  }
  return ChunkName::FromBytes(ByteView(digest).first<ChunkName::kSize>());
}

// --- Reading ---

Result<std::optional<KeyValueStore::Found>> KeyValueStore::Find(const ChunkName& name) {
  std::optional<Found> found;
  SILTFS_RETURN_IF_ERROR(
      engine_->Get({&name, 1}, [&](size_t, const SlotEntry& entry) { found.emplace(entry); }));
  return found;
}

Result<Bytes> KeyValueStore::ReadItem(const ChunkName& name, const Found& found) const {
  Bytes item = found.rest;
  if (!IsInline(found.location)) {
    // The slot has the item's size, unless it holds no part of the item.
    auto size = item.empty() ? Result<size_t>(size_t{0}) : ItemSizeOf(item);
    if (!size.ok()) return std::move(size).status().At(options_.directory);
    const size_t expected = *size > item.size() ? *size - item.size() : 0;
    SILTFS_ASSIGN_OR_RETURN(const Bytes tail, values_->Read(name, found.location, expected));
    item.insert(item.end(), tail.begin(), tail.end());
    return item;
  }
  // Zeros fill the end of the slot behind the item.
  auto size = ItemSizeOf(item);
  if (size.ok() && *size > item.size()) {
    size = Status(StatusCode::kCorruption, "has an item that is longer than its slot");
  }
  if (!size.ok()) return std::move(size).status().At(options_.directory);
  item.resize(*size);
  return item;
}

Result<std::optional<Bytes>> KeyValueStore::ReadCurrentItem(const ChunkName& name, Found found) {
  for (int chase = 0;; ++chase) {
    auto item = ReadItem(name, found);
    if (item.ok()) return std::optional(std::move(*item));
    if (!item.status().Is(StatusCode::kNotFound)) return std::move(item).status();
    const Location gone = found.location;
    SILTFS_ASSIGN_OR_RETURN(auto again, Find(name));
    if (!again) return std::optional<Bytes>();
    if (again->location == gone || chase == kMostChases) {
      return Status(StatusCode::kCorruption,
                    fmt::format("is missing, but the index has the item of {} there", name.ToHex()))
          .At(item.status().path());
    }
    found = std::move(*again);
  }
}

Result<std::optional<Bytes>> KeyValueStore::ValueOf(ByteView key, const ChunkName& name,
                                                    Found found) {
  SILTFS_ASSIGN_OR_RETURN(auto bytes, ReadCurrentItem(name, std::move(found)));
  if (!bytes) return std::optional<Bytes>();
  auto item = DecodeItem(*bytes);
  if (item.ok() && !std::ranges::equal(item->key, key)) {
    item = Status(StatusCode::kCorruption, "has another key's item");
  }
  if (!item.ok()) return std::move(item).status().At(options_.directory);
  return std::optional(Bytes(item->value.begin(), item->value.end()));
}

Result<std::optional<Bytes>> KeyValueStore::Get(ByteView key) {
  std::optional<Bytes> value;
  SILTFS_RETURN_IF_ERROR(Get({&key, 1}, {&value, 1}));
  return value;
}

Status KeyValueStore::Get(std::span<const ByteView> keys, std::span<std::optional<Bytes>> values) {
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  if (keys.size() != values.size()) {
    return {StatusCode::kInvalidArgument, "the numbers of keys and values differ"};
  }
  std::fill(values.begin(), values.end(), std::nullopt);
  lookups_.fetch_add(keys.size(), std::memory_order_relaxed);
  std::vector<ChunkName> names;
  names.reserve(keys.size());
  for (const ByteView key : keys) {
    SILTFS_ASSIGN_OR_RETURN(names.emplace_back(), NameOf(key));
  }
  std::vector<std::optional<Found>> found(keys.size());
  Status status =
      engine_->Get(names, [&](size_t i, const SlotEntry& entry) { found[i].emplace(entry); });
  for (size_t i = 0; i < keys.size(); ++i) {
    if (!found[i]) continue;
    auto value = ValueOf(keys[i], names[i], std::move(*found[i]));
    if (value.ok()) {
      values[i] = std::move(*value);
    } else if (status.ok()) {
      status = std::move(value).status();
    } else {
      value.status().IgnoreError("the first error is returned");
    }
  }
  return status;
}

Status KeyValueStore::ForEach(const std::function<Status(const Item&)>& visit) {
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  return engine_->ForEach([&](const OrderKey&, const SlotEntry& entry) -> Status {
    SILTFS_ASSIGN_OR_RETURN(const auto bytes, ReadCurrentItem(entry.name, Found(entry)));
    if (!bytes) return Status::Ok();
    auto item = DecodeItem(*bytes);
    if (!item.ok()) return std::move(item).status().At(options_.directory);
    return visit(*item);
  });
}

Status KeyValueStore::Verify(const std::function<void(const IndexFinding&)>& report) {
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  SILTFS_RETURN_IF_ERROR(engine_->Verify(report));
  Status visited = engine_->ForEach([&](const OrderKey&, const SlotEntry& entry) -> Status {
    const auto say = [&](const char* code, const Status& why) {
      report({.code = code,
              .path = std::string(why.path().empty() ? options_.directory : why.path()),
              .offset = std::nullopt,
              .text = fmt::format("the item of {}: {}", entry.name.ToHex(), why.ToString())});
    };
    auto bytes = ReadCurrentItem(entry.name, Found(entry));
    if (!bytes.ok()) {
      if (bytes.status().Is(StatusCode::kIoError)) return std::move(bytes).status();
      say(IsInline(entry.location) ? "item-damaged" : "value-damaged", bytes.status());
      return Status::Ok();
    }
    if (!*bytes) return Status::Ok();
    auto item = DecodeItem(**bytes);
    if (item.ok()) {
      SILTFS_ASSIGN_OR_RETURN(const ChunkName name, NameOf(item->key));
      if (name != entry.name) item = Status(StatusCode::kCorruption, "has a key with another name");
    }
    if (!item.ok()) say("item-damaged", item.status());
    return Status::Ok();
  });
  if (!visited.Is(StatusCode::kCorruption)) return visited;
  visited.IgnoreError("damaged pages were reported above");
  return Status::Ok();
}

// --- Writing ---

// Fails after Close. CheckWritable is called under the lock, because Close may run while Put waits
// for the lock.
Status KeyValueStore::Put(ByteView key, ByteView value) {
  if (key.size() > kMaxKeySize) return TooLong("key", key.size(), kMaxKeySize);
  if (value.size() > kMaxValueSize) return TooLong("value", value.size(), kMaxValueSize);
  SILTFS_ASSIGN_OR_RETURN(const ChunkName name, NameOf(key));
  const Bytes bytes = EncodeItem({.key = key, .value = value});
  const ByteView item(bytes);
  const ByteView first = item.first(std::min(item.size(), layout_.rest_size()));
  const ByteView tail = item.subspan(first.size());
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  Location location{.segment = kInlineSegment};
  if (!tail.empty()) {
    SILTFS_ASSIGN_OR_RETURN(location, values_->Append(name, tail));
  }
  return Enter({{.name = name, .location = location}, first});
}

Status KeyValueStore::Enter(const SlotEntry& entry) {
  SILTFS_RETURN_IF_ERROR(engine_->BeginPut(flushes_));
  entries_put_.fetch_add(1, std::memory_order_relaxed);
  SILTFS_RETURN_IF_ERROR(engine_->Enter(entry));
  return engine_->EndPut(1);
}

Status KeyValueStore::Delete(ByteView key) {
  SILTFS_ASSIGN_OR_RETURN(const ChunkName name, NameOf(key));
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  entries_put_.fetch_add(1, std::memory_order_relaxed);
  return engine_->Delete(name);
}

Status KeyValueStore::Flush() {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckWritable());
  return FlushHoldingWriteMutex();
}

Status KeyValueStore::FlushHoldingWriteMutex() { return engine_->Flush(++flushes_); }

Status KeyValueStore::SetMemoryLimit(uint64_t bytes) {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  return engine_->SetMemoryLimit(bytes);
}

Status KeyValueStore::Close() {
  MutexLock lock(write_mutex_);
  SILTFS_RETURN_IF_ERROR(CheckOpen());
  closed_ = true;
  if (options_.read_only) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(engine_->Close(++flushes_));
  return values_->SealOpenSegment();
}

// --- State ---

KeyValueStats KeyValueStore::stats() const {
  KeyValueStats stats;
  stats.index = engine_->stats();
  stats.index.lookups = lookups_.load(std::memory_order_relaxed);
  stats.index.entry_bytes_put = entries_put_.load(std::memory_order_relaxed) * layout_.slot_size();
  stats.values = values_->stats();
  stats.flash_reads = stats.index.flash_reads + stats.values.block_reads;
  stats.flash_bytes = stats.index.flash_bytes + stats.values.flash_bytes;
  return stats;
}

}  // namespace siltfs
