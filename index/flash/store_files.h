// The files of an index of component stores: the only place where their names are made and parsed.
//
// A file name consists of the partition, an increasing id that is never reused in an index, and the
// kind of store. Functions only, safe to call from any thread.
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

// kFilter: the filter of the SortedStore with the same partition and id (ribbon_file.h).
// kPages: a file of pages of an engine other than SILT (page_files.h).
enum class StoreKind : uint8_t { kLog = 0, kHash = 1, kSorted = 2, kFilter = 3, kPages = 4 };

// "log_store", "hash_store", "sorted_store", "sorted_filter", "page_file".
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

// Returns kNoSpace instead of kOutOfMemory, which means that the process has no file descriptors
// left. Nothing was written or lost then, so the caller may try again, as on a full disk.
Status UnlessNoFiles(Status status);

// Creates a new, empty file; replaces one left behind by a crash or failure. Its name is not
// durable yet.
Result<std::shared_ptr<File>> CreateStoreFile(Env& env, const std::string& directory,
                                              const StoreFileId& file);

// Opens a store's file; null if it does not exist. `direct`: with O_DIRECT if the file system
// supports it.
Result<std::shared_ptr<File>> OpenStoreFile(Env& env, const std::string& directory,
                                            const StoreFileId& file, OpenMode mode, bool direct);

// Returns exactly these bytes, which need not be aligned: the whole blocks of 4 KiB around them are
// read, as direct access requires. kCorruption if the file ends earlier.
Result<Bytes> ReadStoreRange(const File& file, uint64_t offset, size_t size);
// The same, but reads into `buffer`, which grows as needed.
Result<ByteView> ReadStoreRange(const File& file, uint64_t offset, size_t size,
                                PageVector<uint8_t>& buffer);

Status RemoveStoreFile(Env& env, const std::string& directory, const StoreFileId& file);

// All store files in `directory`, in order.
Result<std::vector<StoreFileId>> ListStoreFiles(Env& env, const std::string& directory);

}  // namespace siltfs
