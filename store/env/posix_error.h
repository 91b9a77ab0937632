// Converts errno values to Status. For the posix_*.cc, local_socket.cc and daemon.cc of this folder
// only: no other file of siltfs sees an errno.
#pragma once

#include <string_view>

#include "store/base/status.h"

namespace siltfs {

StatusCode CodeOfErrno(int error);

// The Status "cannot ACTION: DESCRIPTION", with the description of the errno value `error`. It has
// no path; add the path with At().
Status PosixError(std::string_view action, int error);

}  // namespace siltfs
