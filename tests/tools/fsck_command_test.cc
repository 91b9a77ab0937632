// siltfs fsck uses the exit codes of fsck(8), and prints one line per finding or one JSON document.
#include <signal.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "fs/interface/file_system.h"
#include "fs/open/store_layout.h"
#include "store/env/polled_signals.h"
#include "store/env/process.h"
#include "store/superblock/superblock.h"
#include "tests/support/catch.h"
#include "tests/support/temporary_directory.h"
#include "tests/tools/run_in_process.h"

namespace siltfs::testing {
namespace {

using Json = nlohmann::json;

class Store {
 public:
  Store() { REQUIRE(Run({"siltfs", "mkfs", path()}).code == 0); }

  std::string path() const { return directory_ / "store"; }
  std::string superblock(int copy) const { return SuperblockPath(path(), copy); }

 private:
  const TemporaryDirectory directory_;
};

void Damage(const std::string& path) { std::filesystem::resize_file(path, 100); }

TEST_CASE("fsck finds nothing wrong with a new store") {
  const Store store;
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"siltfs", "fsck", store.path()},
                                             {"siltfs", "fsck", store.path(), "-n"},
                                             {"siltfs", "fsck", "-n", "-f", store.path()},
                                             {"siltfs", "fsck", "--data", store.path()},
                                             {"fsck.siltfs", store.path()},
                                             {"/sbin/fsck.siltfs", "-n", "-C0", store.path()}}) {
    const Outcome outcome = Run(arguments);
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
    CHECK(Lines(outcome.out) == 1);
    CHECK(Has(outcome.out, "clean: 0 files, 1 directories"));
  }
}

TEST_CASE("fsck prints a line for each finding, and exits with 4") {
  const Store store;
  Damage(store.superblock(1));
  const Outcome outcome = Run({"siltfs", "fsck", "-n", store.path()});
  CHECK(outcome.code == 4);
  CHECK(outcome.err.empty());
  CHECK(Lines(outcome.out) == 2);
  CHECK(outcome.out.starts_with("superblock-copy: " + store.superblock(1) + ": "));
  CHECK(Has(outcome.out, "1 finding: "));
}

TEST_CASE("fsck also exits with 4 if the store cannot be opened at all") {
  const Store store;
  SECTION("no superblock is left") {
    Damage(store.superblock(0));
    Damage(store.superblock(1));
  }
  SECTION("no metadata is left") { std::filesystem::remove_all(store.path() + "/meta"); }
  SECTION("a file replaces a directory") {
    const std::string place = store.path() + GENERATE("/meta", "/segments", "/index");
    std::filesystem::remove_all(place);
    std::ofstream(place) << "x";
  }
  SECTION("a directory replaces a file") {
    const std::string place = store.path() + GENERATE("/lock", "/meta.ledger", "/superblock.0",
                                                      "/meta/CURRENT", "/index/manifest");
    std::filesystem::remove(place);
    std::filesystem::create_directory(place);
  }
  const Outcome outcome = Run({"siltfs", "fsck", store.path()});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 4);
  CHECK(Run({"siltfs", "fsck", "--json", store.path()}).code == 4);
}

TEST_CASE("fsck --json is one document") {
  const Store store;
  Json clean = Json::parse(Run({"siltfs", "fsck", "--json", "--data", store.path()}).out);
  CHECK(clean["store"] == std::filesystem::canonical(store.path()).string());
  CHECK(clean["clean"] == true);
  CHECK(clean["clean_shutdown"] == true);
  CHECK(clean["data"] == true);
  CHECK(clean["finding_count"] == 0);
  CHECK(clean["findings"] == Json::array());
  CHECK(clean["checked"]["directories"] == 1);
  CHECK(clean["checked"]["segments"] == 0);

  Damage(store.superblock(0));
  const Outcome outcome = Run({"siltfs", "fsck", "--json", store.path()});
  CHECK(outcome.code == 4);
  CHECK(outcome.err.empty());
  const Json damaged = Json::parse(outcome.out);
  CHECK(damaged["clean"] == false);
  CHECK(damaged["data"] == false);
  CHECK(damaged["finding_count"] == 1);
  const Json& finding = damaged["findings"].at(0);
  CHECK(finding["code"] == "superblock-copy");
  CHECK(finding["path"] == store.superblock(0));
  CHECK(finding["offset"].is_null());
  CHECK(finding["inode"].is_null());
  CHECK_FALSE(finding["message"].get<std::string>().empty());
}

TEST_CASE("fsck --json is one document also if the check fails") {
  const Store store;
  const TemporaryDirectory directory;
  const auto document = [](const Outcome& outcome, int code) {
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == code);
    CHECK(Lines(outcome.err) == 1);
    Json json = Json::parse(outcome.out);
    CHECK(json["clean"].is_null());
    CHECK("siltfs: " + json["error"].get<std::string>() + "\n" == outcome.err);
    return json;
  };
  SECTION("there is no store") {
    for (const std::string& place : {directory.path(), directory / "missing"}) {
      CHECK(document(Run({"siltfs", "fsck", "--json", place}), 8)["findings"].empty());
    }
  }
  SECTION("it is open") {
    const auto env = NewPosixEnv();
    const auto lock = env->LockFile(LockPath(store.path()));
    REQUIRE_OK(lock);
    document(Run({"siltfs", "fsck", "--json", store.path()}), 8);
  }
  SECTION("it is interrupted, with the findings until then") {
    Damage(store.superblock(1));
    auto signals = PolledSignals::Block();
    REQUIRE_OK(signals);
    REQUIRE(raise(SIGINT) == 0);
    const Json json = document(Run({"siltfs", "fsck", "--json", store.path()}), 32);
    CHECK(json["finding_count"] == 1);
    CHECK(json["findings"].at(0)["code"] == "superblock-copy");
  }
}

TEST_CASE("fsck reports a missing unmount only if metadata can be read") {
  const Store store;
  std::filesystem::remove_all(store.path() + "/meta");
  CHECK_FALSE(Has(Run({"siltfs", "fsck", store.path()}).out, "not unmounted"));
  CHECK(
      Json::parse(Run({"siltfs", "fsck", "--json", store.path()}).out)["clean_shutdown"].is_null());
}

TEST_CASE("fsck exits with 8 if there is nothing to check") {
  const TemporaryDirectory directory;
  for (const std::string& place : {directory.path(), directory / "missing"}) {
    const Outcome outcome = Run({"siltfs", "fsck", place});
    INFO(outcome.err);
    CHECK(outcome.code == 8);
    CHECK(outcome.out.empty());
    CHECK(Lines(outcome.err) == 1);
    CHECK(Has(outcome.err, place));
  }
  CHECK(std::filesystem::is_empty(directory.path()));
}

TEST_CASE("fsck exits with 8 if the store is open") {
  const Store store;
  const auto env = NewPosixEnv();
  FileSystemOptions options;
  options.store = store.path();
  auto fs = FileSystem::Open(*env, options);
  REQUIRE_OK(fs);
  const Outcome outcome = Run({"siltfs", "fsck", store.path()});
  CHECK(outcome.code == 8);
  CHECK(outcome.out.empty());
  REQUIRE_OK((*fs)->Close());
}

TEST_CASE("fsck -p and -y repair, report the repairs, and exit with 1") {
  const Store store;
  const std::string mode = GENERATE("-p", "-a", "-y");
  const bool json = GENERATE(false, true);
  Damage(store.superblock(1));
  std::filesystem::remove_all(store.path() + "/index");
  std::vector<std::string> arguments = {"siltfs", "fsck", mode, store.path()};
  if (json) arguments.emplace_back("--json");
  const Outcome outcome = Run(arguments);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  CHECK(outcome.err.empty());
  if (json) {
    const Json document = Json::parse(outcome.out);
    CHECK(document["clean"] == true);
    CHECK(document["finding_count"] == 2);
    CHECK(document["repaired"] == 2);
    CHECK(document["lost"] == Json::array());
    for (const Json& finding : document["findings"]) CHECK(finding["repaired"] == true);
  } else {
    CHECK(Lines(outcome.out) == 3);
    CHECK(Has(outcome.out, "2 findings, 2 repaired, 0 left: "));
  }
  CHECK(Run({"siltfs", "fsck", "--data", store.path()}).code == 0);
  CHECK(Run(arguments).code == 0);
}

TEST_CASE("fsck.siltfs accepts the arguments of fsck(8) and boot scripts") {
  const Store store;
  for (const std::vector<std::string>& options :
       std::vector<std::vector<std::string>>{{"-a"},
                                             {"-a", "-f"},
                                             {"-a", "-T", "-C0"},
                                             {"-p", "-a"},
                                             {"-afTv"},
                                             {"-y", "-f"},
                                             {"-n", "-v"}}) {
    std::vector<std::string> arguments = {"fsck.siltfs"};
    arguments.insert(arguments.end(), options.begin(), options.end());
    arguments.push_back(store.path());
    const Outcome outcome = Run(arguments);
    INFO(options[0] << ": " << outcome.err);
    CHECK(outcome.code == 0);
    CHECK(outcome.err.empty());
  }
}

TEST_CASE("fsck exits with 4 for findings that a repair leaves, and names them") {
  const Store store;
  Damage(store.superblock(1));
  std::filesystem::remove_all(store.path() + "/meta");
  const Outcome outcome = Run({"siltfs", "fsck", "-p", store.path()});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 4);
  CHECK(Has(outcome.out, "2 findings, 1 repaired, 1 left: "));
  CHECK(Has(outcome.out, "\nleft: metadata-open: "));
  CHECK(Has(outcome.out, "siltfs fsck -y salvages"));
  const Json document = Json::parse(Run({"siltfs", "fsck", "-p", "--json", store.path()}).out);
  CHECK(document["clean"] == false);
  CHECK(document["repaired"] == 0);
  CHECK(document["findings"].at(0)["repaired"] == false);
  CHECK(document["remarks"].size() == 1);
}

TEST_CASE("fsck -y salvages metadata that cannot be opened, and names the damaged copy") {
  const Store store;
  std::filesystem::remove(store.path() + "/meta/CURRENT");
  const Outcome outcome = Run({"siltfs", "fsck", "-y", store.path()});
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  CHECK(Has(outcome.out, "metadata-open: "));
  CHECK(Has(outcome.out, "metadata-salvaged: "));
  CHECK(Has(outcome.out, "/meta.damaged: it may be removed\n"));
  CHECK(std::filesystem::exists(store.path() + "/meta.damaged"));
  CHECK(Run({"siltfs", "fsck", "--data", store.path()}).code == 0);
}

// Writes "/file", of 5,000 bytes.
void WriteFileTo(const Store& store) {
  const auto env = NewPosixEnv();
  FileSystemOptions options;
  options.store = store.path();
  auto fs = FileSystem::Open(*env, options);
  REQUIRE_OK(fs);
  auto file = (*fs)->CreateFile(kRootInode, "file", 0644, {});
  REQUIRE_OK(file);
  const Bytes content(5000, 'x');
  REQUIRE_OK((*fs)->Write(file->inode, 0, content));
  (*fs)->ReleaseFile(file->inode);
  (*fs)->Forget(file->inode, 1);
  REQUIRE_OK((*fs)->Close());
}

TEST_CASE("fsck -y lists lost data") {
  const Store store;
  WriteFileTo(store);
  REQUIRE(std::filesystem::remove(store.path() + "/segments/000000/00000001.seg"));
  const bool json = GENERATE(false, true);
  std::vector<std::string> arguments = {"siltfs", "fsck", "-y", store.path()};
  if (json) arguments.emplace_back("--json");
  const Outcome outcome = Run(arguments);
  INFO(outcome.out << outcome.err);
  CHECK(outcome.code == 1);
  if (json) {
    const Json lost = Json::parse(outcome.out)["lost"];
    REQUIRE(lost.size() == 1);
    CHECK(lost[0]["path"] == "/file");
    CHECK(lost[0]["offset"] == 0);
    CHECK(lost[0]["length"] == 5000);
    CHECK(lost[0]["inode"].is_number());
  } else {
    CHECK(Has(outcome.out, "\nlost: /file, inode "));
    CHECK(Has(outcome.out, "5000 bytes"));
  }
  CHECK(Run({"siltfs", "fsck", "--data", store.path()}).code == 0);
}

TEST_CASE("fsck -y does not repair if the disk that holds the segments may be unmounted") {
  const Store store;
  WriteFileTo(store);
  const std::string aside = store.path() + "/../aside";
  std::filesystem::rename(store.path() + "/segments/000000", aside);
  for (int i = 0; i < 2; ++i) {
    const Outcome outcome = Run({"siltfs", "fsck", "-y", store.path()});
    INFO(outcome.out << outcome.err);
    CHECK(outcome.code == 4);
    CHECK(Has(outcome.out + outcome.err, "is a file system not mounted?"));
  }
  std::filesystem::rename(aside, store.path() + "/segments/000000");
  CHECK(Run({"siltfs", "fsck", "--data", store.path()}).code == 0);
}

TEST_CASE("fsck -p and -y have the codes of a check if there is nothing to repair") {
  const TemporaryDirectory directory;
  const std::string mode = GENERATE("-p", "-y");
  CHECK(Run({"siltfs", "fsck", mode, directory.path()}).code == 8);
  CHECK(std::filesystem::is_empty(directory.path()));
  const Store store;
  CHECK(Run({"fsck.siltfs", mode, store.path()}).code == 0);
  const auto env = NewPosixEnv();
  const auto lock = env->LockFile(LockPath(store.path()));
  REQUIRE_OK(lock);
  CHECK(Run({"siltfs", "fsck", mode, store.path()}).code == 8);
}

TEST_CASE("fsck exits with 16 for unknown arguments") {
  const Store store;
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"siltfs", "fsck"},
           {"siltfs", "fsck", store.path(), "more"},
           {"siltfs", "fsck", "-p", "-y", store.path()},
           {"siltfs", "fsck", "-n", "-y", store.path()},
           {"siltfs", "fsck", "-np", store.path()},
           {"siltfs", "fsck", "--frobnicate", store.path()},
           {"siltfs", "fsck", "-C", "many", store.path()},
           {"siltfs", "fsck", "-C", "-1", store.path()},
           {"siltfs", "fsck", "-C", "999", store.path()},  // no open descriptor
           {"siltfs", "fsck", "-a", "-n", store.path()},
           {"siltfs", "fsck", "-a", "-y", store.path()},
           {"fsck.siltfs"},
           {"fsck.siltfs", "-r", store.path()}}) {
    const Outcome outcome = Run(arguments);
    INFO(arguments.back() << ": " << outcome.err);
    CHECK(outcome.code == 16);
    CHECK(outcome.out.empty());
    CHECK(Lines(outcome.err) == 1);
    CHECK(outcome.err.size() < 200);
  }
}

TEST_CASE("fsck -C writes progress in lines of four words") {
  const Store store;
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  CHECK(Run({"fsck.siltfs", "-C" + std::to_string(ends[1]), store.path()}).code == 0);
  REQUIRE(close(ends[1]) == 0);
  std::string text(10'000, '\0');
  const ssize_t got = read(ends[0], text.data(), text.size());
  REQUIRE(got > 0);
  text.resize(static_cast<size_t>(got));
  REQUIRE(close(ends[0]) == 0);
  std::istringstream words(text);
  unsigned part = 0;
  uint64_t done = 0;
  uint64_t total = 0;
  std::string place;
  std::set<unsigned> parts;
  while (words >> part >> done >> total >> place) {
    parts.insert(part);
    CHECK(place == std::filesystem::canonical(store.path()).string());
  }
  CHECK(parts == std::set<unsigned>{1, 3, 4});  // part 2 needs segments, and there are none
}

// The signal has this action while the object exists. The test may itself have been started in the
// background, where signals are ignored.
class SignalAction {
 public:
  explicit SignalAction(int number, void (*action)(int) = SIG_DFL)
      : number_(number), before_(signal(number, action)) {}
  ~SignalAction() { signal(number_, before_); }
  SignalAction(const SignalAction&) = delete;
  SignalAction& operator=(const SignalAction&) = delete;

 private:
  const int number_;
  void (*const before_)(int);
};

// As under nohup(1), or in the background of a shell without job control.
TEST_CASE("Signals that the process ignores interrupt no command") {
  const int number = GENERATE(SIGINT, SIGHUP);
  const SignalAction action(number, SIG_IGN);
  {
    auto polled = PolledSignals::Block();
    REQUIRE_OK(polled);
    REQUIRE(raise(number) == 0);
    CHECK_FALSE((*polled)->TerminationRequested());
    REQUIRE(raise(SIGTERM) == 0);
    CHECK((*polled)->TerminationRequested());
  }
  auto waited = TerminationSignals::Block();
  REQUIRE_OK(waited);
  REQUIRE(raise(number) == 0);
  CHECK_FALSE((*waited)->Pending());
}

TEST_CASE("an interrupted fsck exits with 32, and SIGUSR1 prints its state") {
  const Store store;
  const int signal_number = GENERATE(SIGINT, SIGTERM, SIGHUP);
  const SignalAction action(signal_number);
  // The signal is blocked on this thread, so that it is pending for the command.
  auto signals = PolledSignals::Block();
  REQUIRE_OK(signals);
  SECTION("interrupted") {
    REQUIRE(raise(signal_number) == 0);
    const Outcome outcome = Run({"siltfs", "fsck", store.path()});
    CHECK(outcome.code == 32);
    CHECK(outcome.out.empty());
    CHECK(Lines(outcome.err) == 1);
  }
  SECTION("SIGUSR1") {
    REQUIRE(raise(SIGUSR1) == 0);
    const Outcome outcome = Run({"siltfs", "fsck", "--quiet", store.path()});
    CHECK(outcome.code == 0);
    CHECK(Lines(outcome.err) == 1);
    CHECK(Has(outcome.err, "siltfs fsck: " + store.path() + ": "));
  }
}

// A signal that is delivered after the command has unblocked it would end the process before the
// findings are printed.
TEST_CASE("Signals that come after the last poll are discarded") {
  auto signals = PolledSignals::Block();
  REQUIRE_OK(signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1}) REQUIRE(raise(signal) == 0);
  signals->reset();  // the old mask is restored, and the process still runs
  CHECK(raise(SIGUSR1) == 0);
}

}  // namespace
}  // namespace siltfs::testing
