#include "fs/repair/metadata_edit.h"

namespace siltfs {

Status MetadataEdit::Write() {
  if (mutations_.empty()) return Status::Ok();
  SILTFS_RETURN_IF_ERROR(kv_.Write(mutations_));
  changes_ += mutations_.size();
  mutations_.clear();
  return Status::Ok();
}

}  // namespace siltfs
