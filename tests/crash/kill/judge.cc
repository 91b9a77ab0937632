#include "tests/crash/kill/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

namespace siltfs::killtest {
namespace {

constexpr size_t kPage = 4096;

bool Same(ByteView a, ByteView b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size()) == 0);
}

size_t FirstDifference(ByteView a, ByteView b) {
  const size_t common = std::min(a.size(), b.size());
  return static_cast<size_t>(
      std::mismatch(a.begin(), a.begin() + static_cast<ptrdiff_t>(common), b.begin()).first -
      a.begin());
}

bool ContentMatches(const Node& node, const Content& observed) {
  if (!node.dirty) return Same(node.content.view(), observed.view());
  return PagesMatch(node.content.view(), node.dirty->view(), observed.view());
}

std::string DescribeNode(const ObservedFile& file) {
  switch (file.type) {
    case NodeType::kDirectory:
      return "a directory";
    case NodeType::kSymlink:
      return fmt::format("a symlink to {}", file.target);
    case NodeType::kFile:
      break;
  }
  return fmt::format("a file of {} bytes, {} names, {} attributes", file.content.size(), file.links,
                     file.xattrs.size());
}

std::string DescribeNode(const Node& node) {
  switch (node.type) {
    case NodeType::kDirectory:
      return "a directory";
    case NodeType::kSymlink:
      return fmt::format("a symlink to {}", node.target);
    case NodeType::kFile:
      break;
  }
  std::string text = fmt::format("a file of {} bytes, {} names, {} attributes", node.content.size(),
                                 node.names.size(), node.xattrs.size());
  if (node.dirty) text += fmt::format(" (and {} bytes not written back)", node.dirty->size());
  return text;
}

// Returns the part of `bytes` in the page that begins at `begin`.
ByteView PartOf(ByteView bytes, size_t begin, size_t size) {
  if (begin >= bytes.size()) return {};
  return bytes.subspan(begin, std::min(size, bytes.size() - begin));
}

// Returns whether `page` consists of a prefix of `bytes`, at least `least` long, and zeros behind
// it.
bool StartsAndIsZeroBehind(ByteView page, ByteView bytes, size_t least) {
  const size_t same = FirstDifference(page, bytes);
  return same >= least && std::all_of(page.begin() + static_cast<ptrdiff_t>(same), page.end(),
                                      [](uint8_t byte) { return byte == 0; });
}

// Replays a writer's operations one by one on the model, and compares the model with the actual
// tree.
class Replay {
 public:
  explicit Replay(const Testimony& testimony)
      : testimony_(testimony), tree_(testimony.base->Copy()) {
    for (const auto& entry : tree_.names()) Check(entry.first);
    for (const auto& entry : *testimony_.observed) Check(entry.first);
  }

  void Apply(const Operation& operation) {
    for (const std::string& name : tree_.Apply(operation)) Check(name);
  }
  bool Matches() const { return differing_.empty(); }
  size_t differences() const { return differing_.size(); }
  Tree& tree() { return tree_; }

  // Describes the first few differences.
  std::string Describe() const {
    std::string text;
    size_t count = 0;
    for (const std::string& name : differing_) {
      if (++count > 3) return text + fmt::format("; and {} more", differing_.size() - 3);
      text += fmt::format("{}{}/{}: {}", text.empty() ? "" : "; ", testimony_.writer, name,
                          DescribeName(name));
    }
    return text;
  }

 private:
  void Check(const std::string& name) {
    if (NameMatches(name)) {
      differing_.erase(name);
    } else {
      differing_.insert(name);
    }
  }
  const ObservedFile* Observed(const std::string& name) const {
    const auto found = testimony_.observed->find(name);
    return found == testimony_.observed->end() ? nullptr : found->second.get();
  }
  bool NameMatches(const std::string& name) const {
    const std::shared_ptr<Node> node = tree_.Find(name);
    const ObservedFile* const file = Observed(name);
    if (!node || file == nullptr) return !node && file == nullptr;
    if (node->type != file->type || node->target != file->target) return false;
    if (node->type == NodeType::kDirectory) return true;
    const ObservedFile* const first = Observed(*node->names.begin());
    return first != nullptr && first->inode == file->inode && file->links == node->names.size() &&
           node->xattrs == file->xattrs && ContentMatches(*node, file->content);
  }
  std::string DescribeName(const std::string& name) const {
    const std::shared_ptr<Node> node = tree_.Find(name);
    const ObservedFile* const file = Observed(name);
    std::string text = fmt::format("expected {}, found {}", node ? DescribeNode(*node) : "nothing",
                                   file != nullptr ? DescribeNode(*file) : "nothing");
    if (node && file != nullptr && !ContentMatches(*node, file->content)) {
      text += fmt::format(" (the first difference is at {})",
                          FirstDifference(node->content.view(), file->content.view()));
    }
    return text;
  }

  const Testimony& testimony_;
  Tree tree_;
  std::set<std::string> differing_;
};

// The prefixes of a writer's history that produce the actual tree.
struct Prefixes {
  std::vector<size_t> matching;  // lengths, ascending
  size_t nearest = 0;            // length of the prefix with the fewest differences
  std::string differences;
};

Prefixes FindPrefixes(const Testimony& testimony, size_t shortest) {
  Prefixes found;
  Replay replay(testimony);
  const std::vector<Operation>& operations = testimony.history->operations;
  size_t fewest = std::numeric_limits<size_t>::max();
  for (size_t length = 0; length <= operations.size(); ++length) {
    if (length > 0) replay.Apply(operations[length - 1]);
    if (length < shortest) continue;
    if (replay.Matches()) found.matching.push_back(length);
    if (replay.differences() < fewest) {
      fewest = replay.differences();
      found.nearest = length;
      found.differences = replay.Describe();
    }
  }
  return found;
}

// Returns how many operations ended before `stamp`. These operations must survive if any operation
// that began at `stamp` survives.
size_t EndedBefore(const History& history, Stamp stamp) {
  const auto& operations = history.operations;
  return static_cast<size_t>(std::find_if(operations.begin(), operations.end(),
                                          [stamp](const Operation& o) { return o.end >= stamp; }) -
                             operations.begin());
}

// Returns whether pages not yet written back are missing, although later pages are present.
bool IsTorn(const Node& node, ByteView observed) {
  return node.dirty && !Same(node.content.view(), observed) &&
         FirstDifference(node.dirty->view(), observed) < observed.size();
}

// Returns the tree after the first `length` operations. Files with data not yet written back have
// their actual contents.
Tree StateAfter(const Testimony& testimony, size_t length, uint64_t& torn_tails) {
  Tree tree = testimony.base->Copy();
  for (size_t i = 0; i < length; ++i) tree.Apply(testimony.history->operations[i]);
  for (const auto& [name, node] : tree.names()) {
    if (!node->dirty) continue;
    const Content& there = testimony.observed->at(name)->content;
    if (IsTorn(*node, there.view())) ++torn_tails;
    node->content = there;
    node->dirty.reset();
  }
  return tree.Copy();
}

}  // namespace

bool PagesMatch(ByteView content, ByteView dirty, ByteView observed) {
  const size_t shortest = std::min(content.size(), dirty.size());
  const size_t longest = std::max(content.size(), dirty.size());
  if (observed.size() < shortest || observed.size() > longest) return false;
  for (size_t begin = 0; begin < observed.size(); begin += kPage) {
    const ByteView page = observed.subspan(begin, std::min(kPage, observed.size() - begin));
    // A legal page holds the old bytes, with zeros behind the old end. Or it holds the new bytes
    // that were in the kernel's cache when the kernel wrote the page back, and then zeros. These
    // new bytes are at least as many as the old bytes of the page.
    const ByteView old_page = PartOf(content, begin, page.size());
    const ByteView new_page = PartOf(dirty, begin, page.size());
    const bool is_old = StartsAndIsZeroBehind(page, old_page, old_page.size());
    if (!is_old && !StartsAndIsZeroBehind(page, new_page, old_page.size())) return false;
  }
  return true;
}

Verdict Judge(const std::vector<Testimony>& testimonies, bool everything) {
  Verdict verdict;
  // The comparison between writers below would detect a missing durable operation, too, but here
  // the message can name the broken promise.
  Stamp durable_before = 0;
  for (const Testimony& t : testimonies)
    durable_before = std::max(durable_before, t.history->durable_before);

  std::vector<Prefixes> prefixes;
  std::vector<size_t> demanded;
  for (const Testimony& t : testimonies) {
    const History& history = *t.history;
    size_t shortest = std::max(history.durable_operations, EndedBefore(history, durable_before));
    if (everything) shortest = history.operations.size();
    demanded.push_back(shortest);
    prefixes.push_back(FindPrefixes(t, shortest));
    const Prefixes& found = prefixes.back();
    if (!found.matching.empty()) continue;
    verdict.losses.push_back(fmt::format(
        "{}: the tree matches no state of its {} operations, of which the first {} are durable; "
        "the nearest state is that after {} ({}), except for: {}",
        t.writer, history.operations.size(), shortest, found.nearest,
        found.nearest == 0 ? "" : DescribeOperation(history.operations[found.nearest - 1]),
        found.differences));
  }
  if (!verdict.losses.empty()) return verdict;

  // If an operation survives, all earlier operations of all writers must survive.
  for (size_t a = 0; a < testimonies.size(); ++a) {
    const size_t least = prefixes[a].matching.front();
    if (least == 0) continue;
    const Operation& newest = testimonies[a].history->operations[least - 1];
    for (size_t b = 0; b < testimonies.size(); ++b) {
      const size_t needed = EndedBefore(*testimonies[b].history, newest.begin);
      if (prefixes[b].matching.back() >= needed) continue;
      const size_t there = prefixes[b].matching.back();
      verdict.losses.push_back(
          fmt::format("{}: \"{}\" is there, but the earlier {}: \"{}\" is not (operation {} of {})",
                      testimonies[a].writer, DescribeOperation(newest), testimonies[b].writer,
                      DescribeOperation(testimonies[b].history->operations[there]), there, needed));
    }
  }
  for (size_t i = 0; i < testimonies.size(); ++i) {
    const size_t least = prefixes[i].matching.front();
    verdict.kept_unasked += least - std::min(least, demanded[i]);
    const size_t most = prefixes[i].matching.back();
    verdict.operations_gone += testimonies[i].history->operations.size() - most;
    verdict.states.push_back(StateAfter(testimonies[i], most, verdict.torn_tails));
  }
  return verdict;
}

}  // namespace siltfs::killtest
