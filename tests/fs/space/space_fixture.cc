#include "tests/fs/space/space_fixture.h"

#include <fmt/format.h>

#include <algorithm>

#include "fs/recipe/recipe_reader.h"
#include "fs/records/directory_entry.h"
#include "fs/records/overlay_extent.h"
#include "fs/records/schema.h"
#include "tests/support/catch.h"

namespace siltfs::testing {
namespace {

constexpr uint32_t kDirectoryMode = 0040755;
constexpr uint32_t kSymlinkMode = 0120777;

}  // namespace

SpaceTree::SpaceTree(uint64_t seed) : random_(seed), kv_(OpenMemoryKvStore(disk_)) {
  InodeRecord root;
  root.mode = kDirectoryMode;
  root.links = 2;
  root.parent = kRootInode;
  records_[kRootInode] = root;
  directories_.push_back(kRootInode);
  Save(kRootInode);
}

void SpaceTree::Write(const std::vector<Mutation>& changes) {
  std::vector<std::string_view> changed;
  for (const Mutation& change : changes) changed.push_back(change.key);
  std::vector<Mutation> all = changes;
  REQUIRE_OK(VersionKeeper(snapshots_).Keep(*kv_->Snapshot(), changed, all));
  REQUIRE_OK(kv_->Write(all));
}

void SpaceTree::Save(uint64_t inode) { Write({{InodeKey(inode), records_.at(inode).Encode()}}); }

void SpaceTree::AddName(uint64_t inode, uint64_t parent, const std::string& name) {
  const uint64_t cookie = next_cookie_++;
  const uint32_t type = records_.at(inode).type();
  names_[{parent, name}] = inode;
  cookies_[{parent, name}] = cookie;
  Write({{DirectoryEntryKey(parent, name), NameEntry{inode, type, cookie}.Encode()},
         {DirectoryCookieKey(parent, cookie), CookieEntry{inode, type, name}.Encode()}});
  Save(inode);
}

uint64_t SpaceTree::MakeDirectory(uint64_t parent, const std::string& name) {
  const uint64_t inode = next_inode_++;
  InodeRecord& record = records_[inode];
  record.mode = kDirectoryMode;
  record.links = 2;
  record.parent = parent;
  directories_.push_back(inode);
  AddName(inode, parent, name);
  return inode;
}

uint64_t SpaceTree::MakeFile(uint64_t parent, const std::string& name, const Entries& entries) {
  const uint64_t inode = next_inode_++;
  records_[inode] = FileOf(Build(nodes_, entries));
  records_[inode].links = 1;
  AddName(inode, parent, name);
  return inode;
}

uint64_t SpaceTree::MakeSymlink(uint64_t parent, const std::string& name) {
  const uint64_t inode = next_inode_++;
  InodeRecord& record = records_[inode];
  record.mode = kSymlinkMode;
  record.links = 1;
  record.target = "somewhere";
  AddName(inode, parent, name);
  return inode;
}

uint64_t SpaceTree::Copy(uint64_t inode, uint64_t parent, const std::string& name) {
  const uint64_t copy = next_inode_++;
  records_[copy] = FileOf(records_.at(inode).recipe);
  records_[copy].links = 1;
  AddName(copy, parent, name);
  return copy;
}

void SpaceTree::Link(uint64_t inode, uint64_t parent, const std::string& name) {
  ++records_.at(inode).links;
  AddName(inode, parent, name);
}

void SpaceTree::Remove(uint64_t parent, const std::string& name) {
  const uint64_t inode = names_.at({parent, name});
  std::vector<Mutation> changes = {
      {DirectoryEntryKey(parent, name), std::nullopt},
      {DirectoryCookieKey(parent, cookies_.at({parent, name})), std::nullopt}};
  names_.erase({parent, name});
  if (--records_.at(inode).links > 0) {
    Write(changes);
    Save(inode);
    return;
  }
  changes.push_back({InodeKey(inode), std::nullopt});
  for (const auto& [offset, extent] : extents_[inode])
    changes.push_back({OverlayKey(inode, offset), std::nullopt});
  Write(changes);
  extents_.erase(inode);
  records_.erase(inode);
}

void SpaceTree::SetContent(uint64_t inode, const Entries& entries) {
  const uint32_t links = records_.at(inode).links;
  const bool has_overlay = records_.at(inode).has_overlay;
  records_[inode] = FileOf(Build(nodes_, entries));
  records_[inode].links = links;
  records_[inode].has_overlay = has_overlay;
  Save(inode);
}

void SpaceTree::AddExtent(uint64_t inode, uint64_t offset, const OverlayExtent& extent,
                          Extent noted) {
  extents_[inode][offset] = std::move(noted);
  Write({{OverlayKey(inode, offset), extent.Encode()}});
  records_.at(inode).has_overlay = true;
  Save(inode);
}

void SpaceTree::AddSlices(uint64_t inode, uint64_t offset, const std::vector<uint64_t>& numbers) {
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kChunks;
  for (const uint64_t number : numbers) {
    extent.slices.push_back({.name = NumberedName(number),
                             .chunk_length = static_cast<uint32_t>(LengthOf(number)),
                             .skip = 3,
                             .length = 50});
    extent.length += 50;
  }
  AddExtent(inode, offset, extent, {.pending_bytes = 0, .numbers = numbers});
}

void SpaceTree::AddPlain(uint64_t inode, uint64_t offset, const std::string& bytes) {
  OverlayExtent extent;
  extent.kind = OverlayExtent::Kind::kPlain;
  extent.length = bytes.size();
  extent.plain = bytes;
  AddExtent(inode, offset, extent, {.pending_bytes = bytes.size(), .numbers = {}});
}

void SpaceTree::TakeSnapshot() {
  snapshots_.push_back({snapshots_.size() + 1, next_inode_});
  for (const auto& [inode, record] : records_) in_snapshots_.merge(ChunksOf(inode));
}

Entries SpaceTree::Numbered(uint64_t first, uint64_t count) {
  Entries entries;
  for (uint64_t number = first; number < first + count; ++number)
    entries.push_back(RecipeEntry::Chunk(NumberedName(number), LengthOf(number)));
  return entries;
}

Entries SpaceTree::SomeEntries(uint64_t count) {
  Entries entries;
  // Runs of numbers that other files have, too, at other places.
  while (entries.size() < count) {
    if (random_.OneIn(10)) entries.push_back(RecipeEntry::Hole(1 + random_.Below(9000)));
    const uint64_t first = random_.OneIn(3) ? random_.Below(3000) : 10'000 + 40 * next_number_++;
    for (const RecipeEntry& entry : Numbered(first, 1 + random_.Below(40)))
      entries.push_back(entry);
  }
  return Merged(entries);
}

uint64_t SpaceTree::AnyFile() {
  std::vector<uint64_t> files;
  for (const auto& [inode, record] : records_) {
    if (record.IsRegular()) files.push_back(inode);
  }
  return files.empty() ? 0 : files[random_.Below(files.size())];
}

std::string SpaceTree::NewName() { return fmt::format("n{}", next_name_++); }

void SpaceTree::Step() {
  const uint64_t parent = directories_[random_.Below(directories_.size())];
  const uint64_t kind = random_.Below(20);
  const uint64_t file = AnyFile();
  if (kind < 3) {
    MakeDirectory(parent, NewName());
  } else if (kind < 9 || file == 0) {
    MakeFile(parent, NewName(), SomeEntries(random_.OneIn(4) ? 600 : 1 + random_.Below(40)));
  } else if (kind < 12) {
    Copy(file, parent, NewName());
  } else if (kind < 14) {
    Link(file, parent, NewName());
  } else if (kind < 15) {
    SetContent(file, SomeEntries(1 + random_.Below(300)));
  } else if (kind < 16) {
    AddSlices(file, random_.Below(3), {random_.Below(3000), random_.Below(3000)});
  } else if (kind < 17) {
    AddPlain(file, 3 + random_.Below(2), std::string(1 + random_.Below(100), 'x'));
  } else if (kind < 18) {
    MakeSymlink(parent, NewName());
  } else if (kind < 19) {
    TakeSnapshot();
  } else {
    auto name = names_.begin();
    std::advance(name, static_cast<ptrdiff_t>(random_.Below(names_.size())));
    if (!IsDirectory(name->second)) {
      const Name removed = name->first;
      Remove(removed.directory, removed.name);
    }
  }
}

Chunks SpaceTree::ChunksOf(uint64_t inode) const {
  Chunks chunks;
  const Recipe& recipe = records_.at(inode).recipe;
  REQUIRE_OK(ForEachNode(nodes_, recipe, [&](const RecipeChild& node, uint8_t) {
    chunks[node.name] = node.node_bytes;
    return true;
  }));
  REQUIRE_OK(ForEachChunk(nodes_, recipe, [&](const ChunkName& name, uint64_t length, uint64_t) {
    chunks[name] = length;
    return Status::Ok();
  }));
  const auto extents = extents_.find(inode);
  if (extents == extents_.end()) return chunks;
  for (const auto& [offset, extent] : extents->second) {
    for (const uint64_t number : extent.numbers) chunks[NumberedName(number)] = LengthOf(number);
  }
  return chunks;
}

std::set<SpaceTree::Name> SpaceTree::NamesOf(const UsagePath& path) const {
  std::set<Name> found;
  uint64_t inode = path.directory;
  if (!path.name.empty()) {
    found.insert({path.directory, path.name});
    inode = names_.at({path.directory, path.name});
  }
  if (!IsDirectory(inode)) return found;
  for (auto name = names_.lower_bound({inode, ""});
       name != names_.end() && name->first.directory == inode; ++name) {
    found.insert(name->first);
    if (IsDirectory(name->second)) found.merge(NamesOf({.directory = name->second}));
  }
  return found;
}

std::map<std::string, UsagePath> SpaceTree::DirectoriesBelow(const UsagePath& path,
                                                             uint32_t depth) const {
  std::map<std::string, UsagePath> found;
  const uint64_t inode =
      path.name.empty() ? path.directory : names_.at({path.directory, path.name});
  if (depth == 0 || !IsDirectory(inode)) return found;
  for (auto name = names_.lower_bound({inode, ""});
       name != names_.end() && name->first.directory == inode; ++name) {
    if (!IsDirectory(name->second)) continue;
    const UsagePath child{.directory = inode, .name = name->first.name};
    found[child.name] = child;
    for (const auto& [below, place] : DirectoriesBelow(child, depth - 1))
      found[name->first.name + "/" + below] = place;
  }
  return found;
}

Chunks SpaceTree::Referenced(const std::set<Name>& names) const {
  Chunks chunks;
  for (const Name& name : names) chunks.merge(ChunksOf(names_.at(name)));
  return chunks;
}

SpaceUsage SpaceTree::Expected(const std::set<Name>& names, const std::set<ChunkName>& kept) const {
  std::map<uint64_t, uint64_t> counted;  // names of inodes
  for (const Name& name : names) ++counted[names_.at(name)];
  SpaceUsage usage;
  Chunks others;  // of inodes that remain if the names are removed
  for (const auto& [inode, record] : records_) {
    const auto found = counted.find(inode);
    const bool stays =
        found == counted.end() || (!record.IsDirectory() && found->second < record.links);
    if (stays) others.merge(ChunksOf(inode));
    if (found == counted.end()) continue;
    record.IsDirectory() ? ++usage.directories : ++usage.files;
    if (!record.IsRegular()) continue;
    const RecipeTotals totals = record.recipe.totals();
    usage.logical_bytes += std::min(record.size, totals.covered_bytes - totals.hole_bytes);
    const auto extents = extents_.find(inode);
    if (extents == extents_.end()) continue;
    for (const auto& [offset, extent] : extents->second)
      usage.pending_bytes += extent.pending_bytes;
  }
  for (const auto& [name, length] : Referenced(names)) {
    if (nodes_.nodes.contains(name)) {
      if (!others.contains(name) && !kept.contains(name) && !in_snapshots_.contains(name))
        usage.recipe_bytes += length;
    } else if (others.contains(name) || kept.contains(name)) {
      usage.shared_bytes += length;
    } else if (in_snapshots_.contains(name)) {
      usage.shared_bytes += length;
      usage.snapshot_bytes += length;
    } else {
      usage.exclusive_bytes += length;
    }
  }
  return usage;
}

}  // namespace siltfs::testing
