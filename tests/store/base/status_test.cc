#include "store/base/status.h"

#include <csignal>
#include <cstdio>
#include <set>
#include <string>
#include <utility>

#include "tests/support/catch.h"

#ifdef SILTFS_CHECK_STATUS
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>
#endif

namespace siltfs {
namespace {

TEST_CASE("an OK status has no cause and no place") {
  Status status;
  REQUIRE(status.ok());
  REQUIRE(status.Is(StatusCode::kOk));
  REQUIRE(status.ToString() == "ok");
  REQUIRE(status.cause().empty());
  REQUIRE(status.path().empty());
  REQUIRE_FALSE(status.offset().has_value());
  REQUIRE(Status(StatusCode::kOk, "ignored").ok());
}

TEST_CASE("a failure is one sentence with path, cause and offset, if known") {
  REQUIRE(Status(StatusCode::kIoError, "cannot read").ToString() == "cannot read");
  REQUIRE(Status(StatusCode::kIoError, "cannot read").At("/f").ToString() == "/f: cannot read");
  REQUIRE(Status(StatusCode::kIoError, "cannot read").At("/f", 7).ToString() ==
          "/f: cannot read at offset 7");
  REQUIRE(Status(StatusCode::kIoError, "cannot read").At("/f", 0).ToString() ==
          "/f: cannot read at offset 0");
  REQUIRE(Status(StatusCode::kIoError, "").At("/f").ToString() == "/f: input/output error");
}

TEST_CASE("the place that was added first is kept, because it is the most precise") {
  Status status = Status(StatusCode::kCorruption, "bad").At("/deep", 3).At("/above", 9).At("/top");
  REQUIRE(status.path() == "/deep");
  REQUIRE(status.offset() == 3);
}

TEST_CASE("a place given to an OK status is ignored") {
  REQUIRE(Status::Ok().At("/f", 3).ok());
  REQUIRE(Status::Ok().At("/f").path().empty());
}

TEST_CASE("a copy is equal and independent") {
  Status one = Status(StatusCode::kNoSpace, "full").At("/f");
  Status two = one;
  one = Status(StatusCode::kNotFound, "gone");
  REQUIRE(two.ToString() == "/f: full");
  REQUIRE_CODE(one, kNotFound);
  two = one;
  REQUIRE_CODE(two, kNotFound);
  Status& same = two;
  two = same;
  REQUIRE_CODE(two, kNotFound);
}

TEST_CASE("a moved-from status is ok") {
  Status one(StatusCode::kNoSpace, "full");
  Status two = std::move(one);
  REQUIRE_CODE(two, kNoSpace);
  REQUIRE(one.ok());  // NOLINT(bugprone-use-after-move)
}

TEST_CASE("every code has a distinct name") {
  std::set<std::string_view> names;
  const int last = static_cast<int>(StatusCode::kOutOfMemory);
  for (int code = 0; code <= last; ++code)
    names.insert(StatusCodeName(static_cast<StatusCode>(code)));
  REQUIRE(names.size() == static_cast<size_t>(last) + 1);
  REQUIRE_FALSE(names.contains("unknown"));
}

#ifdef SILTFS_CHECK_STATUS
// Whether a process that calls `act` is killed by SIGABRT.
template <typename Act>
bool Aborts(Act act) {
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit no_core{0, 0};
    setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGABRT, SIG_DFL);
    if (std::freopen("/dev/null", "w", stderr) == nullptr) _exit(2);
    act();
    _exit(0);
  }
  int how = 0;
  REQUIRE(waitpid(child, &how, 0) == child);
  return WIFSIGNALED(how) && WTERMSIG(how) == SIGABRT;
}

TEST_CASE("a status dropped or overwritten unread ends the program") {
  REQUIRE(Aborts([] { Status dropped(StatusCode::kIoError, "x"); }));
  REQUIRE(Aborts([] {
    Status overwritten(StatusCode::kIoError, "x");
    overwritten = Status::Ok();
  }));
  REQUIRE(Aborts([] {
    Status read(StatusCode::kIoError, "x");
    if (read.ok()) return;
    Status copy = read;  // the copy counts as unread
  }));
}

TEST_CASE("a status that was read, passed on or explicitly ignored does not end the program") {
  REQUIRE_FALSE(Aborts([] { Status fine; }));
  REQUIRE_FALSE(Aborts([] {
    Status read(StatusCode::kIoError, "x");
    if (read.ok()) _exit(1);
  }));
  REQUIRE_FALSE(Aborts([] {
    Status ignored(StatusCode::kIoError, "x");
    ignored.IgnoreError("a test");
  }));
  REQUIRE_FALSE(Aborts([] {
    Status one(StatusCode::kIoError, "x");
    Status two = std::move(one);
    if (two.ok()) _exit(1);
  }));
}
#endif

}  // namespace
}  // namespace siltfs
