"""What column names commonly mean. Only used to propose a policy, never to decide anything."""

from __future__ import annotations

import re

PEOPLE = {"person", "patient", "customer", "client", "member", "subject", "employee", "student", "user", "insured"}
NUMBERED = {"id", "uuid", "guid", "mrn", "nr", "no", "number", "num", "key", "identifier"}
_NAMES = {"surname", "lastname", "firstname", "forename", "fullname", "username", "nickname"}
_CONTACT = {"email", "mail", "phone", "telephone", "mobile", "fax", "address", "street", "url", "ip"}
_PAPERS = {"ssn", "passport", "iban", "account", "licence", "license", "mrn", "nhs"}
_IDENTIFYING = _NAMES | _CONTACT | _PAPERS
KNOWN = {"age", "sex", "gender", "zip", "zipcode", "postcode", "postal", "birth", "birthday", "born", "dob", "race"}
KNOWN |= {"ethnicity", "nationality", "country", "city", "region", "state", "county", "marital", "education", "year"}
POSTAL = {"zip", "zipcode", "postcode", "postal", "plz", "fips", "code"}
SENSITIVE = {"diagnosis", "disease", "condition", "illness", "disorder", "symptom", "hiv", "treatment", "medication"}
SENSITIVE |= {"drug", "procedure", "occupation", "salary", "income", "wage", "earnings", "debt", "credit", "religion"}
SENSITIVE |= {"orientation", "party", "vote", "offence", "offense", "crime", "disability", "icd", "result"}
CONSENT = {"consent", "consented", "agrees", "agreed", "permission", "optin"}
_QUALIFIERS = {"first", "last", "full", "given", "family", "middle", "maiden", "sur", "user", "nick"}


def is_identifying(name: str) -> bool:
    """Whether a column is named like something that points at one person: a name, a number, a way to reach them."""
    words = words_of(name)
    return bool(words & _IDENTIFYING) or words == {"name"} or ("name" in words and bool(words & (PEOPLE | _QUALIFIERS)))


def words_of(name: str) -> set[str]:
    """The words in a column name: `patientId`, `PATIENT_ID` and `Patient id` are patient and id."""
    return {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+", name)}
