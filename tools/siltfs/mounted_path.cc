#include "tools/siltfs/mounted_path.h"

#include <memory>
#include <utility>

#include "tools/siltfs/store_place.h"

namespace siltfs {

SplitPath::SplitPath(const std::string& path) : directory(path) {
  const size_t end = path.find_last_not_of('/');
  if (end == std::string::npos) return;
  const std::string trimmed = path.substr(0, end + 1);
  const size_t slash = trimmed.rfind('/');
  const std::string last = slash == std::string::npos ? trimmed : trimmed.substr(slash + 1);
  if (last == "." || last == "..") return;
  directory = slash == std::string::npos ? "." : trimmed.substr(0, slash + 1);
  name = last;
}

Result<SourceAttributes> DirectoryAt(const std::string& path) {
  const auto opened = SourceDirectory::OpenForNames(path);
  // A missing path is no missing store, which has its own exit code.
  if (opened.status().Is(StatusCode::kNotFound))
    return Status(StatusCode::kIoError, "there is no such directory").At(path);
  SILTFS_RETURN_IF_ERROR(opened.status());
  return (*opened)->Attributes();
}

Result<SourceAttributes> SourceAt(const std::string& path) {
  const SplitPath split(path);
  if (split.name.empty() || path.ends_with('/')) return DirectoryAt(path);
  SILTFS_RETURN_IF_ERROR(DirectoryAt(split.directory).status());
  SILTFS_ASSIGN_OR_RETURN(const auto directory, SourceDirectory::OpenForNames(split.directory));
  auto attributes = directory->AttributesOf(split.name);
  if (attributes.status().Is(StatusCode::kNotFound))
    return Status(StatusCode::kIoError, "there is no such file or directory").At(path);
  return attributes;
}

Status NotMounted(const std::string& path) {
  return Status(StatusCode::kNotFound, "is not in a mounted siltfs file system").At(path);
}

Result<control::DaemonAddress> MountAround(const std::string& path) {
  SILTFS_ASSIGN_OR_RETURN(control::DaemonAddress address, AddressAround(path));
  if (address.mountpoint.empty()) return NotMounted(path);
  SILTFS_RETURN_IF_ERROR(control::Identify(address).status());
  return address;
}

}  // namespace siltfs
