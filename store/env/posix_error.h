// Converts errno values to Status. For this folder only: files of other folders get a Status.
#pragma once

#include <string_view>

#include "store/base/status.h"

namespace siltfs {

StatusCode CodeOfErrno(int error);

// The Status "cannot ACTION: DESCRIPTION", with the description of the errno value `error`. It has
// no path; add the path with At().
Status PosixError(std::string_view action, int error);

}  // namespace siltfs
