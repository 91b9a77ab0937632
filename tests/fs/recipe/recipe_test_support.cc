#include "tests/fs/recipe/recipe_test_support.h"

#include <algorithm>

#include "fs/recipe/recipe_reader.h"
#include "store/base/checksum.h"

namespace siltfs::testing {
namespace {

template <typename Item, typename Ends>
std::vector<std::vector<Item>> Grouped(const std::vector<Item>& items, size_t min, size_t max,
                                       Ends ends) {
  std::vector<std::vector<Item>> groups;
  std::vector<Item> group;
  for (const Item& item : items) {
    group.push_back(item);
    if (group.size() == max || (group.size() >= min && ends(item))) {
      groups.push_back(group);
      group.clear();
    }
  }
  if (!group.empty()) groups.push_back(group);
  return groups;
}

template <typename Item>
RecipeTotals SumOf(const std::vector<Item>& items) {
  RecipeTotals totals;
  bool added = true;
  for (const Item& item : items) added = totals.Add(item) && added;
  REQUIRE(added);
  return totals;
}

RecipeChild Put(MemoryNodeStore& nodes, const Bytes& node, const RecipeTotals& totals) {
  Result<ChunkName> name = nodes.PutNode(node);
  REQUIRE_OK(name);
  return {*name, static_cast<uint32_t>(node.size()), totals.covered_bytes, totals.chunk_count,
          totals.hole_bytes};
}

}  // namespace

ChunkName MemoryNodeStore::NameOf(ByteView node) const {
  Encoder bytes;
  for (uint64_t seed = 1; seed <= 3; ++seed) bytes.U64(Checksum(node, seed));
  ChunkName name = ChunkName::FromBytes(bytes.view().first(ChunkName::kSize));
  if (last_byte) name.bytes.back() = *last_byte;
  return name;
}

Result<ChunkName> MemoryNodeStore::PutNode(ByteView node) {
  if (puts++ == failing_put) return Status(StatusCode::kNoSpace, "no room for a node");
  const ChunkName name = NameOf(node);
  auto& place = nodes[name];
  if (!place) place = std::make_shared<const Bytes>(node.begin(), node.end());
  return name;
}

Result<std::shared_ptr<const Bytes>> MemoryNodeStore::GetNode(const ChunkName& name, uint32_t) {
  if (gets++ == failing_get) return Status(StatusCode::kIoError, "cannot read a node");
  const auto found = nodes.find(name);
  if (found == nodes.end()) return Status(StatusCode::kNotFound, "no node " + name.ToHex());
  return found->second;
}

ChunkName RandomName(Random& random, Names names) {
  ChunkName name;
  if (names == Names::kFew) {
    Random few(random.Below(3));
    few.Fill(name.bytes);
  } else {
    random.Fill(name.bytes);
  }
  if (names == Names::kAlwaysEnd) name.bytes.back() = 0;
  if (names == Names::kNeverEnd) name.bytes.back() = 0xff;
  return name;
}

Entries RandomEntries(Random& random, size_t count, EntryStyle style) {
  Entries entries;
  entries.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    if (random.Below(16) < style.holes_of_16) {
      const uint64_t length =
          random.OneIn(8) ? random.Below(uint64_t{1} << 24) : random.Below(1 << 16);
      entries.push_back(RecipeEntry::Hole(1 + length));
    } else {
      const ChunkName name = RandomName(random, style.names);
      entries.push_back(RecipeEntry::Chunk(name, 1 + name.bytes[0] * 257u));
    }
  }
  return entries;
}

Entries Merged(const Entries& entries) {
  Entries merged;
  for (const RecipeEntry& entry : entries) {
    if (entry.is_hole() && !merged.empty() && merged.back().is_hole()) {
      merged.back().length += entry.length;
    } else {
      merged.push_back(entry);
    }
  }
  return merged;
}

uint64_t BytesOf(const Entries& entries) {
  uint64_t bytes = 0;
  for (const RecipeEntry& entry : entries) bytes += entry.length;
  return bytes;
}

Entries Slice(const Entries& entries, uint64_t begin, uint64_t end) {
  Entries slice;
  uint64_t at = 0;
  for (const RecipeEntry& entry : entries) {
    const uint64_t from = std::max(at, begin);
    const uint64_t to = std::min(at + entry.length, end);
    at += entry.length;
    if (from >= to) continue;
    const bool whole = to - from == entry.length;
    if (!whole) REQUIRE(entry.is_hole());
    slice.push_back(entry);
    slice.back().length = to - from;
  }
  return slice;
}

Entries ModelSplice(const Entries& old, const std::vector<Splice>& splices) {
  Entries result;
  const auto append = [&result](const Entries& more) {
    result.insert(result.end(), more.begin(), more.end());
  };
  uint64_t at = 0;
  for (const Splice& splice : splices) {
    append(Slice(old, at, splice.begin));
    append(splice.entries);
    at = splice.end;
  }
  append(Slice(old, at, BytesOf(old)));
  return Merged(result);
}

Recipe ModelBuild(MemoryNodeStore& nodes, const Entries& list) {
  const Entries entries = Merged(list);
  Recipe recipe;
  if (entries.size() <= 32) {
    recipe.entries = entries;
    return recipe;
  }
  const auto leaf_ends = [](const RecipeEntry& entry) {
    return !entry.is_hole() && (entry.name.bytes[19] & 0x3f) == 0;
  };
  for (const Entries& leaf : Grouped(entries, 64, 512, leaf_ends)) {
    recipe.children.push_back(Put(nodes, EncodeNode(leaf, SumOf(leaf)), SumOf(leaf)));
  }
  recipe.height = 1;
  const auto inner_ends = [](const RecipeChild& child) {
    return (child.name.bytes[19] & 0x1f) == 0;
  };
  while (recipe.children.size() > 24) {
    std::vector<RecipeChild> above;
    for (const auto& node : Grouped(recipe.children, 32, 256, inner_ends)) {
      above.push_back(Put(nodes, EncodeNode(recipe.height, node, SumOf(node)), SumOf(node)));
    }
    recipe.children = above;
    ++recipe.height;
  }
  return recipe;
}

Recipe Build(NodeStore& nodes, const Entries& entries) {
  RecipeBuilder builder(nodes);
  bool appended = true;
  for (const RecipeEntry& entry : entries) appended = builder.Append(entry).ok() && appended;
  REQUIRE(appended);
  Result<Recipe> recipe = builder.Finish();
  REQUIRE_OK(recipe);
  return *recipe;
}

Entries ReadAll(NodeStore& nodes, const Recipe& recipe) {
  Entries entries;
  uint64_t at = 0;
  bool in_order = true;
  RecipeReader reader(nodes, recipe);
  for (reader.Seek(0); reader.Valid(); reader.Next()) {
    in_order = in_order && reader.entry_offset() == at;
    entries.push_back(reader.entry());
    at += reader.entry().length;
  }
  REQUIRE_OK(reader.status());
  REQUIRE(in_order);
  REQUIRE(at == recipe.size());
  return entries;
}

ChunkName NameFrom(uint8_t first) {
  ChunkName name;
  for (size_t i = 0; i < ChunkName::kSize; ++i) name.bytes[i] = static_cast<uint8_t>(first + i);
  return name;
}

std::string Hex(ByteView bytes) {
  std::string hex;
  for (uint8_t byte : bytes) {
    hex.push_back("0123456789abcdef"[byte >> 4]);
    hex.push_back("0123456789abcdef"[byte & 15]);
  }
  return hex;
}

}  // namespace siltfs::testing
