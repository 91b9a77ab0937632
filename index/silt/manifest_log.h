// The manifest of a SILT index on flash: a base that is replaced atomically (store_manifest.h), and
// a file of edits (manifest_edit.h, index/flash/edit_log.h). When the edits take more space than
// the base is worth, a new base replaces both. Not in the paper, which leaves the list of stores
// open.
//
// Thread-safety: none. Ownership: `env` must outlive the object. Errors: after kNoSpace a call may
// be repeated. Durability: Replace and Record return OK when the change is durable. After an error
// the manifest on flash is either the old or the new one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "index/flash/edit_log.h"
#include "index/silt/manifest_edit.h"
#include "index/silt/store_manifest.h"
#include "store/env/env.h"

namespace siltfs {

class ManifestLog {
 public:
  ManifestLog(Env& env, const std::string& directory)
      : env_(env), directory_(directory), edits_(env, directory) {}

  // The base with all complete edits; empty if there is no manifest. kCorruption if a part is
  // missing or damaged, kNeedsNewer for a later version. Writes nothing. Except after Read of an
  // empty directory, FinishRead must follow before anything is written.
  Result<std::optional<StoreManifest>> Read();
  // Makes durable what Read has found, and removes an incomplete edit. Call it before files are
  // removed that this manifest does not list: a killed process may have left an edit in the
  // kernel's memory only. Changes the generation of `manifest`. Succeeds on a full disk.
  Status FinishRead(StoreManifest& manifest);

  // Replaces base and edits by this manifest, and sets its generation. After an error the next
  // Record tries again with its manifest.
  Status Replace(StoreManifest& manifest);
  // Applies an edit to the manifest on flash, and then to `manifest`, which must be equal to the
  // manifest on flash. After an error `manifest` is unchanged.
  Status Record(const ManifestEdit& edit, StoreManifest& manifest);

  // Replaces base and edits if there are edits. After a clean end nothing depends on the last edit,
  // whose damage would look like a crash.
  Status Fold(StoreManifest& manifest) {
    return edits_.WantsFold() ? Replace(manifest) : Status::Ok();
  }

  uint64_t bytes_written() const { return edits_.bytes_written(); }

 private:
  // Writes `manifest`, with the generation that it is called with.
  EditLog::WriteBase Writer(StoreManifest& manifest) const;

  Env& env_;
  const std::string directory_;
  EditLog edits_;
};

// The manifest as ManifestLog::Read finds it.
Result<std::optional<StoreManifest>> ReadStoreManifest(Env& env, const std::string& directory);

}  // namespace siltfs
