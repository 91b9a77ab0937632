// Traces of the simulated device. The changes of one device are replayed step by step on a second
// device. A power cut on the second device leaves the same state as on the first one.
#include <map>
#include <set>

#include "store/base/random.h"
#include "store/env/files.h"
#include "store/env/sim_env.h"
#include "tests/support/catch.h"

namespace siltfs {
namespace {

using Unsynced = CrashPolicy::Unsynced;
using Tree = std::map<std::string, std::string>;  // path -> content; "/" for a directory

void Collect(Env& env, const std::string& directory, Tree& tree) {
  auto entries = env.ListDirectory(directory);
  REQUIRE_OK(entries);
  for (const DirectoryEntry& entry : *entries) {
    const std::string path = JoinPath(directory, entry.name);
    if (entry.type == FileType::kDirectory) {
      tree[path] = "/";
      Collect(env, path, tree);
    } else {
      auto content = ReadWholeFile(env, path, 1u << 24);
      REQUIRE_OK(content);
      tree[path] = *content;
    }
  }
}

Tree TreeOf(Env& env) {
  Tree tree;
  Collect(env, "/", tree);
  return tree;
}

// Random calls on a device; files stay open while their names change. Failures are allowed.
class Calls {
 public:
  Calls(SimEnv& env, uint64_t seed) : env_(env), random_(seed) {}

  void Make() {
    const std::string path = Path();
    switch (random_.Below(12)) {
      case 0:
        return Ignore(env_.CreateDirectory(path));
      case 1:
      case 2: {
        auto file = env_.OpenFile(path, {.mode = OpenMode::kCreate});
        Ignore(file.status());
        if (file.ok()) open_.push_back(std::move(*file));
        return;
      }
      case 3:
        return Ignore(env_.Rename(path, Path()));
      case 4:
        return Ignore(env_.RemoveFile(path));
      case 5:
        return Ignore(env_.RemoveDirectory(path));
      case 6:
        return Ignore(env_.SyncDirectory(random_.OneIn(2) ? "/" : "/a"));
      default:
        if (!open_.empty()) OnFile(*open_[random_.Below(open_.size())]);
    }
  }

 private:
  std::string Path() {
    return std::string(random_.OneIn(2) ? "/a/" : "/") + static_cast<char>('a' + random_.Below(4));
  }
  void OnFile(File& file) {
    switch (random_.Below(6)) {
      case 0:
        return Ignore(file.Sync());
      case 1:
        return Ignore(file.Truncate(random_.Below(6000)));
      case 2:
        return Ignore(file.Preallocate(random_.Below(20'000)));
      default: {
        Bytes bytes(1 + random_.Below(3000));
        random_.Fill(bytes);
        return Ignore(file.Write(random_.Below(6000), bytes));
      }
    }
  }
  static void Ignore(const Status& status) { status.IgnoreError("any outcome will do"); }

  SimEnv& env_;
  Random random_;
  std::vector<std::unique_ptr<File>> open_;
};

CrashPolicy AnyPolicy(uint64_t seed) {
  return {static_cast<Unsynced>(seed % 5), seed, seed % 3 == 0};
}

}  // namespace

TEST_CASE("a replayed trace gives the state that the first device would have had") {
  const uint64_t seed = GENERATE(range(1, 13));
  CAPTURE(seed);
  SimEnv recorded(seed);
  recorded.SetCapacity(40'960);
  recorded.StartTrace();
  Calls calls(recorded, seed);
  for (int i = 0; i < 200; ++i) {
    if (i % 40 == 7) recorded.FailCall({.calls = SimCall::kSync});
    if (i % 40 == 9) recorded.FailCall({.calls = SimCall::kWrite, .bytes_written = 700});
    calls.Make();
  }
  const auto at_the_end = recorded.Fork();
  const SimTrace trace = recorded.TakeTrace();
  REQUIRE(trace.size() > 60);
  SimEnv replayed(seed);
  for (const SimRecord& record : trace) REQUIRE_OK(replayed.Replay(record));
  REQUIRE(TreeOf(replayed) == TreeOf(recorded));
  for (uint64_t policy = 0; policy < 30; ++policy) {
    const auto one = recorded.Fork();
    const auto other = replayed.Fork();
    const auto third = at_the_end->Fork();
    one->PowerCut(AnyPolicy(policy));
    other->PowerCut(AnyPolicy(policy));
    third->PowerCut(AnyPolicy(policy));
    CAPTURE(policy);
    REQUIRE(TreeOf(*one) == TreeOf(*other));
    REQUIRE(TreeOf(*one) == TreeOf(*third));
  }
}

TEST_CASE("a replay can continue after the device was cut") {
  const uint64_t seed = GENERATE(range(1, 7));
  CAPTURE(seed);
  SimEnv first(seed);
  first.StartTrace();
  Calls calls(first, seed);
  for (int i = 0; i < 80; ++i) calls.Make();
  const SimTrace before = first.TakeTrace();
  first.PowerCut(AnyPolicy(seed));
  first.StartTrace();
  Calls more(first, seed + 100);
  for (int i = 0; i < 80; ++i) more.Make();
  const SimTrace after = first.TakeTrace();
  SimEnv other;
  for (const SimRecord& record : before) REQUIRE_OK(other.Replay(record));
  other.PowerCut(AnyPolicy(seed));
  for (const SimRecord& record : after) REQUIRE_OK(other.Replay(record));
  first.PowerCut(AnyPolicy(seed + 1));
  other.PowerCut(AnyPolicy(seed + 1));
  REQUIRE(TreeOf(first) == TreeOf(other));
}

TEST_CASE("a fork and its original do not see each other's changes") {
  SimEnv env;
  auto file = env.OpenFile("/f", {.mode = OpenMode::kCreate});
  REQUIRE_OK(file);
  REQUIRE_OK((*file)->Write(0, AsBytes("before")));
  const auto fork = env.Fork();
  REQUIRE_OK((*file)->Write(0, AsBytes("AFTER!")));
  auto theirs = fork->OpenFile("/f", {.mode = OpenMode::kReadWrite});
  REQUIRE_OK(theirs);
  REQUIRE_OK((*theirs)->Write(6, AsBytes(" and more")));
  REQUIRE(TreeOf(env) == Tree{{"/f", "AFTER!"}});
  REQUIRE(TreeOf(*fork) == Tree{{"/f", "before and more"}});
  fork->PowerCut();
  REQUIRE(TreeOf(*fork).empty());  // its name was never synced
  REQUIRE(TreeOf(env).size() == 1);
}

TEST_CASE("marks keep their places between the changes of a trace") {
  SimEnv env;
  env.Mark(AsBytes("not recorded"));
  env.StartTrace();
  REQUIRE_OK(env.CreateDirectory("/d"));
  env.Mark(AsBytes("here"));
  REQUIRE_OK(env.SyncDirectory("/"));
  const SimTrace trace = env.TakeTrace();
  REQUIRE(trace.size() == 3);
  REQUIRE(trace[0].kind == SimRecord::Kind::kCreateDirectory);
  REQUIRE(AsText(trace[1].data) == "here");
  REQUIRE(trace[2].kind == SimRecord::Kind::kSyncDirectory);
  REQUIRE(env.TakeTrace().empty());
}

TEST_CASE("an encoded trace is decoded, and other bytes are refused") {
  SimEnv env;
  env.StartTrace();
  Calls calls(env, 5);
  for (int i = 0; i < 60; ++i) calls.Make();
  env.Mark(AsBytes("note"));
  const SimTrace trace = env.TakeTrace();
  const Bytes bytes = EncodeTrace(trace);
  auto back = DecodeTrace(bytes);
  REQUIRE_OK(back);
  REQUIRE(back->size() == trace.size());
  REQUIRE(EncodeTrace(*back) == bytes);
  for (size_t i = 0; i < trace.size(); ++i) REQUIRE(Describe((*back)[i]) == Describe(trace[i]));
  for (size_t length = 0; length < bytes.size(); length += 1 + length / 7)
    REQUIRE_CODE(DecodeTrace(ByteView(bytes).first(length)), kCorruption);
  Bytes longer = bytes;
  longer.push_back(0);
  REQUIRE_CODE(DecodeTrace(longer), kCorruption);
}

TEST_CASE("under kGarble a torn write may hold random bytes, only within the write") {
  std::set<char> seen;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    SimEnv env;
    auto file = env.OpenFile("/f", {.mode = OpenMode::kCreate});
    REQUIRE_OK(file);
    REQUIRE_OK((*file)->Write(0, AsBytes(std::string(2000, 'o'))));
    REQUIRE_OK((*file)->Sync());
    REQUIRE_OK(env.SyncDirectory("/"));
    REQUIRE_OK((*file)->Write(700, AsBytes(std::string(1000, 'n'))));
    env.PowerCut({Unsynced::kGarble, seed});
    const std::string content = TreeOf(env).at("/f");
    REQUIRE(content.size() == 2000);
    REQUIRE(content.substr(0, 700) == std::string(700, 'o'));
    REQUIRE(content.substr(1700) == std::string(300, 'o'));
    // Each sector holds old bytes, new bytes or noise.
    for (size_t at : {700u, 1024u, 1536u}) {
      const size_t end = at == 700 ? 1024 : at == 1024 ? 1536 : 1700;
      const std::string sector = content.substr(at, end - at);
      const bool old = sector == std::string(sector.size(), 'o');
      const bool is_new = sector == std::string(sector.size(), 'n');
      seen.insert(old ? 'o' : is_new ? 'n' : '?');
    }
  }
  REQUIRE(seen == std::set<char>{'o', 'n', '?'});
}

TEST_CASE(
    "if names survive in any order, a rename still survives only if its file's creation does") {
  std::set<std::set<std::string>> seen;
  for (uint64_t seed = 0; seed < 80; ++seed) {
    SimEnv env;
    for (const char* path : {"/a", "/b"}) {
      auto file = env.OpenFile(path, {.mode = OpenMode::kCreate});
      REQUIRE_OK(file);
    }
    REQUIRE_OK(env.Rename("/a", "/c"));
    env.PowerCut({Unsynced::kSubset, seed, true});
    std::set<std::string> names;
    for (const auto& [path, content] : TreeOf(env)) names.insert(path);
    seen.insert(names);
  }
  using Names = std::set<std::string>;
  REQUIRE(seen == std::set<Names>{Names{}, Names{"/a"}, Names{"/b"}, Names{"/c"}, Names{"/a", "/b"},
                                  Names{"/b", "/c"}});
}

}  // namespace siltfs
