#include "tools/siltfs/output_file.h"

#include "store/env/mountpoint.h"

namespace siltfs {
namespace {

// The name alone shows a store: the superblock may be damaged.
bool HasSuperblock(Env& env, const std::string& directory) {
  const auto has = [&](const char* name) { return env.GetFileInfo(directory + "/" + name).ok(); };
  return has("superblock.0") || has("superblock.1");
}

}  // namespace

Status CheckOutsideStore(Env& env, const std::string& file, const std::string& store) {
  const size_t slash = file.rfind('/');
  const auto found = AbsolutePath(slash == std::string::npos ? "." : file.substr(0, slash + 1));
  if (!found.ok()) {
    found.status().IgnoreError("the function that writes the file reports it");
    return Status::Ok();
  }
  bool inside = (*found + "/").starts_with(store + "/");
  // The path of the store may be another one: it may be mounted at a second place, or have moved.
  std::string directory = *found;
  while (!inside) {
    inside = HasSuperblock(env, directory);
    if (directory.empty()) break;  // the root directory
    directory.resize(directory.rfind('/') == std::string::npos ? 0 : directory.rfind('/'));
  }
  if (!inside) return Status::Ok();
  return Status(StatusCode::kInvalidArgument,
                "is in the store's own directory; name a file elsewhere")
      .At(file);
}

}  // namespace siltfs
