/* SPDX-License-Identifier: MIT */
/* symbols.c - looks addresses up in the symbol table and the debug information of a file. */
#include "stack/symbols.h"

#include <dwarf.h>
#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#include <unistd.h>

struct symbols {
	Dwfl *dwfl;
	Dwfl_Module *module;
};

/* Debug information of a separate package is found by build id, where it is installed. */
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_build_id_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.section_address = dwfl_offline_section_address,
};

struct symbols *symbols_new(const struct module *m)
{
	struct symbols *s;
	int fd = m->elf ? dup(m->fd) : -1;

	if (fd < 0)
		return NULL;
	s = xcalloc(1, sizeof(*s));
	s->dwfl = dwfl_begin(&callbacks);
	if (s->dwfl) {
		dwfl_report_begin(s->dwfl);
		s->module = dwfl_report_elf(s->dwfl, m->path, m->path, fd, 0, true);
		dwfl_report_end(s->dwfl, NULL, NULL);
	}
	if (s->module)
		return s;
	util_close(fd); /* otherwise the library closes it */
	symbols_free(s);
	return NULL;
}

void symbols_free(struct symbols *s)
{
	if (!s)
		return;
	dwfl_end(s->dwfl);
	free(s);
}

static char *copy_or_null(const char *text)
{
	return text ? xstrdup(text) : NULL;
}

static char *file_of(Dwarf_Die *cu, Dwarf_Die *call)
{
	Dwarf_Attribute a;
	Dwarf_Files *files;
	Dwarf_Word n;
	size_t count;

	if (dwarf_formudata(dwarf_attr(call, DW_AT_call_file, &a), &n) ||
	    dwarf_getsrcfiles(cu, &files, &count) || n >= count)
		return NULL;
	return copy_or_null(dwarf_filesrc(files, n, NULL, NULL));
}

static uint32_t line_of(Dwarf_Die *call)
{
	Dwarf_Attribute a;
	Dwarf_Word n;

	return dwarf_formudata(dwarf_attr(call, DW_AT_call_line, &a), &n) ? 0 : (uint32_t)n;
}

/* Finds the compilation unit of an address. Not all compilers write an index of units. */
static Dwarf_Die *unit_of(const struct symbols *s, uint64_t addr, Dwarf_Addr *bias)
{
	Dwarf_Die *cu = dwfl_module_addrdie(s->module, addr, bias);

	if (cu)
		return cu;
	while ((cu = dwfl_module_nextcu(s->module, cu, bias)))
		if (dwarf_haspc(cu, addr - *bias) == 1)
			return cu;
	return NULL;
}

static struct stack_frame line_at(Dwarf_Die *cu, uint64_t addr)
{
	Dwarf_Line *line = dwarf_getsrc_die(cu, addr);
	struct stack_frame f = { 0 };
	int number = 0;

	if (line && !dwarf_lineno(line, &number) && number > 0) {
		f.file = copy_or_null(dwarf_linesrc(line, NULL, NULL));
		f.line = (uint32_t)number;
	}
	return f;
}

/* Adds the functions around an address; each but the outermost was inlined into the next. */
static bool add_functions(Dwarf_Die *cu, uint64_t addr, struct stack_frames *out)
{
	Dwarf_Die *scopes = NULL, *way = NULL;
	int n = dwarf_getscopes(cu, addr, &scopes);
	struct stack_frame f = line_at(cu, addr);
	bool found = false;

	n = n > 0 ? dwarf_getscopes_die(&scopes[0], &way) : 0;
	for (int i = 0; i < n && !found; i++) {
		int tag = dwarf_tag(&way[i]);

		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_subprogram)
			continue;
		f.function = copy_or_null(dwarf_diename(&way[i]));
		vec_push(out, f);
		f = (struct stack_frame){ 0 };
		found = tag == DW_TAG_subprogram;
		if (!found)
			f = (struct stack_frame){ .file = file_of(cu, &way[i]),
						  .line = line_of(&way[i]) };
	}
	/* If no function is found, the line is that of the function before. */
	free(f.file);
	free(scopes);
	free(way);
	return found;
}

void symbols_add(const struct symbols *s, uint64_t addr, struct stack_frames *out)
{
	Dwarf_Addr bias = 0;
	Dwarf_Die *cu = s ? unit_of(s, addr, &bias) : NULL;

	if (cu && add_functions(cu, addr - bias, out))
		return;
	vec_push(out,
		 (struct stack_frame){ .function = copy_or_null(
					       s ? dwfl_module_addrname(s->module, addr) : NULL) });
}

char *symbols_build_id(const struct module *m)
{
	const void *bytes;
	ssize_t n = m->elf ? dwelf_elf_gnu_build_id(m->elf, &bytes) : 0;
	struct strbuf text = STRBUF_INIT;

	for (ssize_t i = 0; i < n; i++)
		strbuf_addf(&text, "%02x", ((const unsigned char *)bytes)[i]);
	return n > 0 ? strbuf_detach(&text) : NULL;
}
