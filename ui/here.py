"""Who is here, and what every page needs of the server: the library and its jobs."""

import streamlit as st

from app.jobs import Jobs
from app.library import Library
from app.service import Service, services


def here() -> Service:
    """The service of whoever looks at the page; where people log in, the page ends without one."""
    if not services().wants_login:
        return services().of("")
    if not is_logged_in():
        st.stop()
    # The two together tell a person from all others, for all time (OpenID Connect Core 5.7).
    service = services().of(f"{st.user['iss']} {st.user['sub']}")
    service.work()
    return service


def is_logged_in() -> bool:
    """Whether it is known who looks at the page."""
    return bool(st.user.get("is_logged_in")) and "sub" in st.user


def library() -> Library:
    """The library of whoever is here."""
    return here().library


def jobs() -> Jobs:
    """Its work in the background."""
    return library().jobs
