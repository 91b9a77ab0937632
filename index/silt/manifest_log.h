// The manifest of a SILT index on flash: a base that is replaced atomically (store_manifest.h), and
// a file of edits (manifest_edit.h) that is appended to. When the edits take more space than the
// base is worth, a new base replaces both. Not in the paper, which leaves the list of stores open.
//
// An edit is synced before the next one is written. So after a crash at most the last edit is
// incomplete, and Read ignores it. An invalid edit before a valid one is damage.
//
// Thread-safety: none. Ownership: `env` must outlive the object. Errors: after kNoSpace a call may
// be repeated. Durability: Replace and Record return OK when the change is durable. After an error
// the manifest on flash is either the old or the new one.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "index/silt/manifest_edit.h"
#include "index/silt/store_manifest.h"
#include "store/env/env.h"

namespace siltfs {

class ManifestLog {
 public:
  ManifestLog(Env& env, std::string directory) : env_(env), directory_(std::move(directory)) {}

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
    return end_ == 0 && !needs_base_ ? Status::Ok() : Replace(manifest);
  }

  uint64_t bytes_written() const { return bytes_written_; }

 private:
  // As Replace, but kOutOfMemory if there are no file descriptors. Only after kNoSpace it is
  // certain that the old base is in place.
  Status ReplaceBase(StoreManifest& manifest);
  Result<uint64_t> ReadEdits(ByteView bytes, StoreManifest& manifest);
  Status OpenEdits(OpenMode mode);
  std::string EditsPath() const;

  Env& env_;
  const std::string directory_;
  std::shared_ptr<File> edits_;  // null before FinishRead or Replace
  uint64_t generation_ = 0;      // the greatest one that a base may have
  uint32_t number_ = 0;          // of edits of this generation
  uint64_t end_ = 0;             // of the last edit, in the file
  std::string last_edit_;        // that Read found, as it is in the file; empty if there is none
  uint64_t most_bytes_ = 0;      // of edits, before a new base is written
  bool needs_base_ = false;      // the device may have part of a base or edit that failed
  uint64_t bytes_written_ = 0;
};

// The manifest as ManifestLog::Read finds it.
Result<std::optional<StoreManifest>> ReadStoreManifest(Env& env, const std::string& directory);

}  // namespace siltfs
