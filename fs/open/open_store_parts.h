// Opens the parts of a store that files and the library of chunks (fs/library) share: locks, checks
// and recovers the store, and puts its parts together. FileSystem::Open makes a FileSystem of them.
#pragma once

#include <memory>

#include "chunker/parameters.h"
#include "fs/core/file_system_impl.h"
#include "fs/interface/file_system.h"
#include "store/base/result.h"
#include "store/env/env.h"
#include "store/superblock/superblock.h"

namespace siltfs {

// `disk` must outlive the parts. The options for snapshots and background work have no effect.
// Errors: those of FileSystem::Open; kUnsupported if the store has other content. Fails with
// kNotADirectory or kIsADirectory where FileSystem::Open fails with kCorruption.
Result<FileSystemImpl::Parts> OpenStoreParts(Env& disk, const FileSystemOptions& options,
                                             StoreContent content);

// The parameters with which the store cuts chunks.
Result<std::shared_ptr<const ChunkerTables>> MakeChunkerTables(const Superblock& superblock);

}  // namespace siltfs
