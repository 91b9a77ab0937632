# cmake -D FROM=FILE -D TO=FILE -D LINE=TEXT -D FAULTY_LINE=TEXT -P change_line.cmake: copies a
# source, with FAULTY_LINE in place of LINE, which must occur exactly once.
file(READ ${FROM} source)
string(FIND "${source}" "${LINE}" first)
string(FIND "${source}" "${LINE}" last REVERSE)
if(first EQUAL -1 OR NOT first EQUAL last)
  message(FATAL_ERROR "${FROM} must have the text once: ${LINE}")
endif()
string(REPLACE "${LINE}" "${FAULTY_LINE}" source "${source}")
file(WRITE ${TO} "${source}")
