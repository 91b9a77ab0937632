#include "index/silt/manifest_log.h"

#include <utility>

namespace siltfs {

EditLog::WriteBase ManifestLog::Writer(StoreManifest& manifest) const {
  return [this, &manifest](uint64_t generation) -> Result<uint64_t> {
    StoreManifest base = manifest;
    base.generation = generation;
    SILTFS_RETURN_IF_ERROR(WriteManifestBase(env_, directory_, base));
    manifest.generation = generation;
    return EncodeStoreManifest(base).size();
  };
}

Result<std::optional<StoreManifest>> ManifestLog::Read() {
  SILTFS_ASSIGN_OR_RETURN(auto manifest, ReadManifestBase(env_, directory_));
  if (!manifest) return manifest;
  const auto apply = [&manifest](ByteView bytes) -> Status {
    SILTFS_ASSIGN_OR_RETURN(const ManifestEdit edit, DecodeManifestEdit(bytes));
    SILTFS_RETURN_IF_ERROR(CheckEdit(edit, *manifest));
    Apply(edit, *manifest);
    return Status::Ok();
  };
  SILTFS_RETURN_IF_ERROR(
      edits_.Read(manifest->generation, EncodeStoreManifest(*manifest).size(), apply));
  return manifest;
}

Status ManifestLog::FinishRead(StoreManifest& manifest) {
  return edits_.FinishRead(Writer(manifest));
}

Status ManifestLog::Replace(StoreManifest& manifest) { return edits_.Replace(Writer(manifest)); }

Status ManifestLog::Record(const ManifestEdit& edit, StoreManifest& manifest) {
  SILTFS_RETURN_IF_ERROR(CheckEdit(edit, manifest));
  std::optional<StoreManifest> replaced;  // with the edit, if a base is written instead
  const auto write_base = [&](uint64_t generation) -> Result<uint64_t> {
    replaced = manifest;
    Apply(edit, *replaced);
    return Writer(*replaced)(generation);
  };
  SILTFS_RETURN_IF_ERROR(edits_.Record(EncodeManifestEdit(edit), write_base));
  if (replaced) {
    manifest = std::move(*replaced);
  } else {
    Apply(edit, manifest);
  }
  return Status::Ok();
}

Result<std::optional<StoreManifest>> ReadStoreManifest(Env& env, const std::string& directory) {
  return ManifestLog(env, directory).Read();
}

}  // namespace siltfs
