// From the machine's error numbers to Status. For the posix_*.cc, local_socket.cc and daemon.cc of
// this folder only: nothing else in siltfs sees an errno.
#pragma once

#include <string_view>

#include "store/base/status.h"

namespace siltfs {

StatusCode CodeOfErrno(int error);

// "cannot ACTION: the system's words for `error`", without a place: add it with At().
Status PosixError(std::string_view action, int error);

}  // namespace siltfs
