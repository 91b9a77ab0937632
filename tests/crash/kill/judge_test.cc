// Tests of the kill loop's judge: it must accept some states and reject others.
#include "tests/crash/kill/judge.h"

#include <memory>

#include "tests/support/catch.h"

namespace siltfs::killtest {
namespace {

Content Text(const std::string& text) {
  const ByteView bytes = AsBytes(text);
  return Content(Bytes(bytes.begin(), bytes.end()));
}

// Builds a writer's history. Every operation ends before the next begins.
class Past {
 public:
  explicit Past(Clock& clock) : clock_(clock) {}

  Past& Do(OperationKind kind, const std::string& name, const std::string& other = "",
           const Content& content = {}) {
    const Stamp begin = clock_.Now();
    history.operations.push_back({.kind = kind,
                                  .name = name,
                                  .other = other,
                                  .content = content,
                                  .begin = begin,
                                  .end = clock_.Now()});
    return *this;
  }
  Past& File(const std::string& name, const std::string& text) {
    Do(OperationKind::kCreate, name);
    Do(OperationKind::kWrite, name, "", Text(text));
    return Do(OperationKind::kWriteBack, name);
  }
  // Adds an fsync of the object that the last operation changed.
  Past& Synced() {
    history.MadeDurable(history.operations.size() - 1);
    return *this;
  }

  History history;
  Tree base;

 private:
  Clock& clock_;
};

// Returns the tree as ReadTree would observe it.
ObservedTree Observe(const Tree& tree) {
  ObservedTree observed;
  std::map<const Node*, std::shared_ptr<ObservedFile>> files;
  for (const auto& [name, node] : tree.names()) {
    auto& file = files[node.get()];
    if (!file) {
      file = std::make_shared<ObservedFile>();
      file->type = node->type;
      file->inode = files.size();
      file->links = node->names.size();
      file->content = node->content;
      file->target = node->target;
      file->xattrs = node->xattrs;
    }
    observed[name] = file;
  }
  return observed;
}

ObservedTree After(const Past& past, size_t operations) {
  Tree tree = past.base.Copy();
  for (size_t i = 0; i < operations; ++i) tree.Apply(past.history.operations[i]);
  return Observe(tree);
}

// Replaces the content of the file `name`.
void Replace(ObservedTree& tree, const std::string& name, const Content& content) {
  auto changed = std::make_shared<ObservedFile>(*tree.at(name));
  changed->content = content;
  tree[name] = changed;
}

bool IsLegal(const Past& past, const ObservedTree& observed, bool everything = false) {
  return Judge({{"w", &past.base, &past.history, &observed}}, everything).losses.empty();
}

TEST_CASE("without a sync every state of a history is legal") {
  Clock clock;
  Past past(clock);
  past.File("a", "one").Do(OperationKind::kRename, "a", "b").Do(OperationKind::kUnlink, "b");
  for (size_t i = 0; i <= past.history.operations.size(); ++i) {
    CAPTURE(i);
    CHECK(IsLegal(past, After(past, i)));
    CHECK(IsLegal(past, After(past, i), /*everything=*/true) ==
          (i == 0 || i == past.history.operations.size()));  // the last state equals the first
  }
}

TEST_CASE("synced operations must survive") {
  Clock clock;
  Past past(clock);
  past.File("a", "one");
  past.history.MadeDurable(1);
  past.history.operations[1].written_back = true;
  CHECK_FALSE(IsLegal(past, After(past, 0)));
  CHECK_FALSE(IsLegal(past, After(past, 1)));
  CHECK(IsLegal(past, After(past, 2)));
  ObservedTree changed = After(past, 3);
  Replace(changed, "a", Text("onE"));
  CHECK_FALSE(IsLegal(past, changed));
  Replace(changed, "a", Text("on"));
  CHECK_FALSE(IsLegal(past, changed));
  Replace(changed, "a", Text("one more"));
  CHECK_FALSE(IsLegal(past, changed));
}

TEST_CASE("no operation survives without the same writer's earlier ones") {
  Clock clock;
  Past past(clock);
  past.File("a", "one").File("b", "two");
  ObservedTree observed = After(past, 6);
  observed.erase("a");
  CHECK_FALSE(IsLegal(past, observed));
}

TEST_CASE("a rename over a closed file leaves the whole old file or the whole new one") {
  Clock clock;
  Past past(clock);
  past.File("name", "old").File("temporary", "new").Do(OperationKind::kRename, "temporary", "name");
  past.history.MadeDurable(3);  // the creation of the temporary file
  CHECK(IsLegal(past, After(past, 6)));
  CHECK(IsLegal(past, After(past, 7)));
  for (const char* text : {"", "ne", "nld", "old"}) {
    CAPTURE(text);
    ObservedTree observed = After(past, 7);
    Replace(observed, "name", Text(text));
    CHECK_FALSE(IsLegal(past, observed));
  }
  ObservedTree both = After(past, 7);
  both["temporary"] = both["name"];
  CHECK_FALSE(IsLegal(past, both));
}

TEST_CASE("hard links stay names of one file") {
  Clock clock;
  Past past(clock);
  past.File("a", "one").Do(OperationKind::kLink, "a", "b").Synced();
  CHECK(IsLegal(past, After(past, 4)));
  ObservedTree apart = After(past, 4);
  auto other = std::make_shared<ObservedFile>(*apart.at("b"));
  other->inode = 99;
  apart["b"] = other;
  CHECK_FALSE(IsLegal(past, apart));
  ObservedTree miscounted = After(past, 4);
  auto file = std::make_shared<ObservedFile>(*miscounted.at("a"));
  file->links = 1;
  miscounted["a"] = miscounted["b"] = file;
  CHECK_FALSE(IsLegal(past, miscounted));
}

TEST_CASE("lost links, attributes and directories are detected") {
  Clock clock;
  Past past(clock);
  past.Do(OperationKind::kMakeDirectory, "d")
      .Do(OperationKind::kMakeSymlink, "d/s", "there")
      .File("d/f", "text")
      .Do(OperationKind::kSetXattr, "d/f", "user.a", Text("value"))
      .Synced();
  const size_t all = past.history.operations.size();
  CHECK(IsLegal(past, After(past, all)));
  CHECK_FALSE(IsLegal(past, After(past, all - 1)));
  for (const char* name : {"d", "d/s", "d/f"}) {
    CAPTURE(name);
    ObservedTree observed = After(past, all);
    observed.erase(name);
    CHECK_FALSE(IsLegal(past, observed));
  }
}

TEST_CASE("an fsync makes another writer's earlier operations durable") {
  Clock clock;
  Past first(clock);
  Past second(clock);
  first.File("a", "one");
  second.Do(OperationKind::kCreate, "b").Synced();
  first.Do(OperationKind::kUnlink, "a");
  const auto judge = [&](size_t of_first) {
    const ObservedTree a = After(first, of_first);
    const ObservedTree b = After(second, 1);
    return Judge(
               {{"w0", &first.base, &first.history, &a}, {"w1", &second.base, &second.history, &b}},
               false)
        .losses.empty();
  };
  // The first writer creates "a", writes to it, writes it back (kWriteBack) and unlinks it. The
  // fsync of the second writer promises the first three of these operations.
  CHECK_FALSE(judge(1));
  CHECK(judge(3));
  CHECK(judge(4));
}

TEST_CASE("no operation survives without another writer's earlier ones") {
  Clock clock;
  Past first(clock);
  Past second(clock);
  first.File("a", "one");
  second.Do(OperationKind::kCreate, "b");
  const auto judge = [&](size_t of_first, size_t of_second) {
    const ObservedTree a = After(first, of_first);
    const ObservedTree b = After(second, of_second);
    return Judge(
               {{"w0", &first.base, &first.history, &a}, {"w1", &second.base, &second.history, &b}},
               false)
        .losses.empty();
  };
  CHECK(judge(0, 0));
  CHECK(judge(3, 0));
  CHECK(judge(3, 1));
  CHECK_FALSE(judge(0, 1));
  CHECK_FALSE(judge(1, 1));
}

TEST_CASE("the observed tree becomes the next base") {
  Clock clock;
  Past past(clock);
  past.Do(OperationKind::kCreate, "log").Do(OperationKind::kWrite, "log", "", Text("abcdef"));
  ObservedTree observed = After(past, 1);
  Replace(observed, "log", Text("abc"));
  const Verdict verdict = Judge({{"w", &past.base, &past.history, &observed}}, false);
  REQUIRE(verdict.losses.empty());
  REQUIRE(verdict.states.size() == 1);
  const auto node = verdict.states[0].Find("log");
  CHECK(AsText(node->content.view()) == "abc");
  CHECK_FALSE(node->dirty);
}

TEST_CASE("bytes not written back arrive page by page, in any order") {
  constexpr size_t kPage = 4096;
  const Bytes old(kPage + 100, 'o');
  Bytes grown(3 * kPage, 'n');
  std::copy(old.begin(), old.end(), grown.begin());
  CHECK(PagesMatch(old, grown, old));
  CHECK(PagesMatch(old, grown, grown));
  CHECK(PagesMatch(old, grown, ByteView(grown).first(2 * kPage + 5)));
  Bytes third_page_only = grown;
  std::fill(third_page_only.begin() + kPage + 100, third_page_only.begin() + 2 * kPage, 0);
  CHECK(PagesMatch(old, grown, third_page_only));
  Bytes gap = grown;
  gap[kPage + 200] = 0;  // within a page, followed by more of the page
  CHECK_FALSE(PagesMatch(old, grown, gap));
  Bytes wrong = grown;
  wrong[2 * kPage + 7] = 'x';
  CHECK_FALSE(PagesMatch(old, grown, wrong));
  CHECK_FALSE(PagesMatch(old, grown, ByteView(old).first(kPage + 99)));
  Bytes written_back_lost = grown;
  std::fill(written_back_lost.begin() + kPage, written_back_lost.begin() + 2 * kPage, 0);
  CHECK_FALSE(PagesMatch(old, grown, written_back_lost));

  const Bytes before(2 * kPage, 'b');
  Bytes overwritten = before;
  std::fill(overwritten.begin() + 10, overwritten.begin() + kPage + 10, 'w');
  CHECK(PagesMatch(before, overwritten, before));
  CHECK(PagesMatch(before, overwritten, overwritten));
  Bytes second_page_new = overwritten;
  std::copy_n(before.begin(), kPage, second_page_new.begin());
  CHECK(PagesMatch(before, overwritten, second_page_new));
  Bytes mixed = before;
  std::fill(mixed.begin() + 10, mixed.begin() + 20, 'w');
  CHECK_FALSE(PagesMatch(before, overwritten, mixed));
}

}  // namespace
}  // namespace siltfs::killtest
