// The files of a SILT index: the only place where their names are made and parsed.
//
// A file is named by the partition it belongs to, by an id that is never used twice in an index and
// counts up, and by the kind of its store. Functions only, safe to call from any thread.
#pragma once

#include <compare>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/env/env.h"
#include "store/env/page_allocator.h"

namespace siltfs {

// kFilter: what goes with the SortedStore of the same partition and id (ribbon_file.h).
enum class StoreKind : uint8_t { kLog = 0, kHash = 1, kSorted = 2, kFilter = 3 };

// "log_store", "hash_store", "sorted_store", "sorted_filter".
std::string_view StoreKindName(StoreKind kind);

struct StoreFileId {
  StoreKind kind = StoreKind::kLog;
  uint32_t partition = 0;
  uint64_t id = 0;
  auto operator<=>(const StoreFileId&) const = default;
};

inline constexpr uint64_t kMaxStoreId = UINT64_MAX / 2;

std::string StoreFileName(const StoreFileId& file);
std::optional<StoreFileId> ParseStoreFileName(std::string_view name);

// A new, empty file; takes the place of one that a crash or failure left behind. Its name is not
// durable yet.
Result<std::shared_ptr<File>> CreateStoreFile(Env& env, const std::string& directory,
                                              const StoreFileId& file);

// Null if there is no such file. `direct`: with O_DIRECT where the disk can, without where not.
Result<std::shared_ptr<File>> OpenStoreFile(Env& env, const std::string& directory,
                                            const StoreFileId& file, OpenMode mode, bool direct);

// Exactly these bytes, whatever the alignment; direct access asks for whole blocks of 4 KiB.
// kCorruption if the file ends before.
Result<Bytes> ReadStoreRange(const File& file, uint64_t offset, size_t size);
// The same, in `buffer`, which grows to what is needed.
Result<ByteView> ReadStoreRange(const File& file, uint64_t offset, size_t size,
                                PageVector<uint8_t>& buffer);

Status RemoveStoreFile(Env& env, const std::string& directory, const StoreFileId& file);

// All that are in `directory`, in order.
Result<std::vector<StoreFileId>> ListStoreFiles(Env& env, const std::string& directory);

}  // namespace siltfs
