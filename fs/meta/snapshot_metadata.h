// The metadata of a snapshot, as a read-only MetadataStore.
//
// Views show the state as of the snapshot (fs/versions/snapshot_view.h). Each view is made of the
// newest committed state of the live store, so no old state of the key-value store is kept.
//
// Thread-safety and errors: as MetadataStore; all changes fail with kReadOnly. Ownership: borrows
// `live`, which must outlive the result.
#pragma once

#include <memory>

#include "fs/meta/metadata_store.h"

namespace siltfs {

// `snapshot` must exist as long as the result is used.
std::unique_ptr<MetadataStore> OpenSnapshotMetadata(const CommitPort& live,
                                                    const NumberedSnapshot& snapshot);

}  // namespace siltfs
