#include "tools/import/import_records.h"

#include <algorithm>
#include <array>

#include "fs/interface/posix_acl.h"

namespace siltfs {
namespace {

// Attributes in other namespaces belong to the source's file system, for example to NFS.
bool CanBeStored(std::string_view name) {
  constexpr std::array<std::string_view, 3> kNamespaces = {"user.", "trusted.", "security."};
  return IsAclName(name) ||
         std::any_of(kNamespaces.begin(), kNamespaces.end(),
                     [name](std::string_view space) { return name.starts_with(space); });
}

}  // namespace

std::string PathIn(const DirectoryNode& node, const std::string& name) {
  return node.path.ends_with('/') ? node.path + name : node.path + "/" + name;
}

transfer::EntryRecord RecordOf(const SourceAttributes& attributes,
                               const std::vector<SourceXattr>& xattrs) {
  transfer::EntryRecord record;
  record.mode = attributes.mode;
  record.uid = attributes.uid;
  record.gid = attributes.gid;
  record.atime = attributes.atime;
  record.mtime = attributes.mtime;
  for (const SourceXattr& xattr : xattrs) {
    if (CanBeStored(xattr.name)) record.xattrs.push_back({xattr.name, xattr.value});
  }
  return record;
}

transfer::EntryRecord EntryRecordOf(const DirectoryNode& node, const std::string& name,
                                    const SourceAttributes& attributes,
                                    const std::vector<SourceXattr>& xattrs) {
  transfer::EntryRecord record = RecordOf(attributes, xattrs);
  record.parent = node.target;
  record.name = name;
  record.device = attributes.device;
  if (attributes.IsRegular()) {
    record.size = attributes.size;
    record.source = {attributes.inode, attributes.ctime};
  }
  return record;
}

bool Changed(const SourceAttributes& before, const SourceAttributes& after) {
  return before.size != after.size || before.mtime != after.mtime || before.ctime != after.ctime;
}

}  // namespace siltfs
