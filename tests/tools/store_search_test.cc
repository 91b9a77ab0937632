#include "tools/siltfs/store_search.h"

#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

namespace fs = std::filesystem;

std::string UuidOf(const std::string& store) {
  const auto env = NewPosixEnv();
  const auto state = ReadSuperblock(*env, store);
  REQUIRE_OK(state);
  return state->superblock.shown_uuid().ToText();
}

template <typename T>
T Must(Result<T> result) {
  REQUIRE_OK(result);
  return std::move(result).value();
}

Result<std::string> Find(const std::string& source, const std::vector<std::string>& places) {
  const auto env = NewPosixEnv({.links = SymbolicLinks::kRefuse});
  const auto tag = ParseStoreTag(source);
  REQUIRE(tag.has_value());
  return FindTaggedStore(*env, *tag, places);
}

std::string Cause(const Result<std::string>& found) {
  REQUIRE_FALSE(found.ok());
  return found.status().ToString();
}

class Places {
 public:
  Places() {
    for (const char* name : {"one", "two"}) fs::create_directory(directory_ / name);
    Make("one/first", "alpha");
    Make("one/second", "beta");
    Make("two/third", "");
    std::ofstream(directory_ / "one/file") << "no store";
    fs::create_directory(directory_ / "one/directory");
    fs::create_symlink("nowhere", directory_ / "one/link");
  }
  void Make(const std::string& name, const std::string& label) {
    REQUIRE(Run({"siltfs", "mkfs", directory_ / name, "--label", label}).code == 0);
  }
  std::string At(const std::string& name) const { return directory_ / name; }
  std::vector<std::string> All() const { return {At("one"), At("missing"), At("two")}; }

 private:
  const TemporaryDirectory directory_;
};

TEST_CASE("A source of a mount is a tag only in four forms") {
  CHECK(ParseStoreTag("LABEL=a b")->ToText() == "LABEL=a b");
  CHECK(ParseStoreTag("siltfs-label:a")->ToText() == "LABEL=a");
  CHECK(ParseStoreTag("UUID=x")->ToText() == "UUID=x");
  CHECK(ParseStoreTag("siltfs-uuid:x")->ToText() == "UUID=x");
  for (const char* path : {"/srv/store", "./UUID=x", "label=a", "PARTUUID=x", ""})
    CHECK_FALSE(ParseStoreTag(path));
}

TEST_CASE("A store is found by its label and its UUID among the entries of the places") {
  const Places places;
  CHECK(Must(Find("LABEL=alpha", places.All())) == places.At("one/first"));
  CHECK(Must(Find("LABEL=beta", {places.At("one/second")})) == places.At("one/second"));
  std::string uuid = UuidOf(places.At("two/third"));
  CHECK(Must(Find("siltfs-uuid:" + uuid, places.All())) == places.At("two/third"));
  std::ranges::transform(uuid, uuid.begin(), [](char c) { return static_cast<char>(toupper(c)); });
  CHECK(Must(Find("UUID=" + uuid, places.All())) == places.At("two/third"));
}

TEST_CASE("A place that is reached twice is no second store") {
  const Places places;
  fs::create_directory_symlink(places.At("one"), places.At("again"));
  fs::create_directory_symlink(places.At("one/first"), places.At("two/link"));
  std::vector<std::string> all = places.All();
  all.push_back(places.At("again"));
  all.push_back(places.At("one/first"));
  CHECK(Must(Find("LABEL=alpha", all)) == places.At("one/first"));
}

TEST_CASE("A tag that no store has is refused with the places") {
  const Places places;
  const auto none = Find("LABEL=gamma", places.All());
  REQUIRE_CODE(none, kNotFound);
  CHECK(Has(Cause(none), "there is no store with LABEL=gamma in " + places.At("one") + ", "));
  CHECK(Has(Cause(none), "list the store's directory in /etc/siltfs/stores"));
  REQUIRE_CODE(Find("LABEL=", places.All()), kNotFound);
  REQUIRE_CODE(Find("UUID=1234", places.All()), kInvalidArgument);
}

TEST_CASE("A label of several stores is refused with their names") {
  Places places;
  places.Make("two/other", "alpha");
  const auto several = Find("LABEL=alpha", places.All());
  REQUIRE_CODE(several, kUnsupported);
  CHECK(Has(Cause(several), "LABEL=alpha names several stores: " + places.At("one/first") +
                                " (UUID " + UuidOf(places.At("one/first")) + "), " +
                                places.At("two/other") + " (UUID "));
  CHECK(Has(Cause(several), "use the UUID"));
}

TEST_CASE("A copy of a store is refused until it has another UUID") {
  const Places places;
  fs::copy(places.At("one/first"), places.At("two/copy"), fs::copy_options::recursive);
  const std::string uuid = UuidOf(places.At("one/first"));
  const auto both = Find("UUID=" + uuid, places.All());
  REQUIRE_CODE(both, kUnsupported);
  CHECK(Has(Cause(both), "siltfs tune --uuid random"));
  REQUIRE(Run({"siltfs", "tune", places.At("two/copy"), "--uuid", "random"}).code == 0);
  CHECK(Must(Find("UUID=" + uuid, places.All())) == places.At("one/first"));
  CHECK(Must(Find("UUID=" + UuidOf(places.At("two/copy")), places.All())) == places.At("two/copy"));
}

TEST_CASE("A store of another user does not count") {
  if (geteuid() != 0) return;  // only the superuser can give a store away
  const Places places;
  REQUIRE(chown(places.At("one/first").c_str(), 65534, 65534) == 0);
  const auto foreign = Find("LABEL=alpha", places.All());
  REQUIRE_CODE(foreign, kNotFound);
  CHECK(Has(Cause(foreign), places.At("one/first") + " has it, but belongs to another user"));
  // So another user's store makes no label ambiguous, either.
  CHECK(Must(Find("LABEL=beta", places.All())) == places.At("one/second"));
}

TEST_CASE("A damaged store in a place is named if the tag is not found") {
  const Places places;
  for (const char* copy : {"superblock.0", "superblock.1"})
    std::ofstream(places.At("one/first") + "/" + copy) << std::string(4096, 'x');
  const auto damaged = Find("LABEL=alpha", places.All());
  REQUIRE_CODE(damaged, kNotFound);
  CHECK(Has(Cause(damaged), "what " + places.At("one/first") + " has is not known"));
  CHECK(Must(Find("LABEL=beta", places.All())) == places.At("one/second"));
}

TEST_CASE("The file with the places has a line for each") {
  const TemporaryDirectory directory;
  const auto env = NewPosixEnv();
  const std::string file = directory / "stores";
  CHECK(Must(ReadStorePlaces(*env, file)) == DefaultStorePlaces());
  std::ofstream(file) << "# stores\n\n  /srv/a b \t\r\n/mnt/disk";
  CHECK(Must(ReadStorePlaces(*env, file)) == std::vector<std::string>{"/srv/a b", "/mnt/disk"});
  std::ofstream(file) << "/srv\nstores\n";
  const auto wrong = ReadStorePlaces(*env, file);
  REQUIRE_CODE(wrong, kInvalidArgument);
  CHECK(Has(wrong.status().ToString(), "line 2: \"stores\" is no absolute path"));
  std::ofstream(file) << "# none\n";
  CHECK(Must(ReadStorePlaces(*env, file)).empty());
}

TEST_CASE("The mount helper finds the store before it mounts") {
  const Places places;
  const std::string search = "search=" + places.At("one") + ":" + places.At("two");
  const auto mount = [&](const std::string& source) {
    return Run({"mount.siltfs", source, places.At("one/directory"), "-f", "-o", search});
  };
  const Outcome none = mount("siltfs-label:gamma");
  CHECK(none.code == 32);
  CHECK(Has(none.err, "there is no store with LABEL=gamma"));
  const Outcome wrong = Run({"siltfs", "mount", "LABEL=a", "/", "-o", "search=here"});
  CHECK(wrong.code == 2);
  CHECK(Has(wrong.err, "mount option \"search\": \"here\" is no absolute path"));
}

}  // namespace
}  // namespace siltfs::testing
