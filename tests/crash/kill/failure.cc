#include "tests/crash/kill/failure.h"

#include <cerrno>
#include <cstring>

namespace siltfs::killtest {

Failure SystemFailure(const std::string& what) {
  return Failure(what + ": " + std::strerror(errno));
}

}  // namespace siltfs::killtest
